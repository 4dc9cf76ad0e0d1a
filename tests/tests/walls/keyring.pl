# keyring.pl put COMMAND…: joins a fresh session keyring, puts a key into it and becomes COMMAND
# keyring.pl read RING: ends with 0 if that key can be found in the keyring and read
use strict;
my $machine = `uname -m`;
my ($add, $control) = $machine =~ /x86_64/ ? (248, 250) : $machine =~ /aarch64/ ? (217, 219) : exit 127;
my ($kind, $name, $value) = ("user", "pdca-walls", "s3cr3t");
my $what = shift;
if ($what eq "put") {
    syscall($control, 1, 0);
    syscall($add, $kind, $name, $value, 6, -3);
    exec @ARGV or exit 127;
}
my $ring = shift() + 0;
my $key = syscall($control, 10, $ring, $kind, $name, 0);
my $buffer = "\0" x 64;
exit($key > 0 && syscall($control, 11, $key, $buffer, 64) > 0 ? 0 : 1);
