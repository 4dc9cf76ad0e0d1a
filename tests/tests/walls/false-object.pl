# false-object.pl GITDIR ID: writes false content under the id of an object into the store
use strict;
use Compress::Zlib;
my ($git, $id) = @ARGV;
my $dir = "$git/objects/" . substr($id, 0, 2);
mkdir $dir;
my $file = "$dir/" . substr($id, 2);
unlink $file;
open(my $out, ">", $file) or exit 1;
print $out compress("blob 7\0BREACH\n");
