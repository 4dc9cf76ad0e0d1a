# handle.pl FILE: ends with 0 if FILE can be opened for writing by its handle
use strict;
my $machine = `uname -m`;
my ($name, $open) = $machine =~ /x86_64/ ? (303, 304) : $machine =~ /aarch64/ ? (264, 265) : exit 127;
my $file = shift;
my $handle = pack("L l a128", 128, 0, "");
my $mount = pack("i", 0);
syscall($name, -100, $file, $handle, $mount, 0) == 0 or exit 1;
(my $above = $file) =~ s{/[^/]*$}{};
opendir(my $dir, $above) or exit 1;
exit(syscall($open, fileno($dir), $handle, 1) >= 0 ? 0 : 1);
