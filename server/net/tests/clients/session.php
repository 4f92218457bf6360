<?php
// One request of a session: the first counts one, the second two, and so on.

declare(strict_types=1);

session_id('0123456789abcdef');
if (!session_start()) {
    exit(1);
}
$_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
$_SESSION['basket'][] = str_repeat('item ', 100);
if ($_SESSION['count'] !== (int) $argv[1] || count($_SESSION['basket']) !== (int) $argv[1]) {
    fwrite(STDERR, "request {$argv[1]} found {$_SESSION['count']}\n");
    exit(1);
}
session_write_close();
echo "session: request {$argv[1]}\n";
