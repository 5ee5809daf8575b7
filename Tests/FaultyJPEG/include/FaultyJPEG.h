// Preloaded before libjpeg, `jpeg_read_header` misbehaves on an image that holds one of these
// marks, like a decoder with a bug or one that an image has taken over.
#define FAULTY_JPEG_MARK "\nFaultyJPEG: "
// Writes a message, and decodes the image.
#define FAULTY_JPEG_PRINT "print\n"
// Bugs: ends by a signal, frees memory twice, exits, computes or allocates without end.
#define FAULTY_JPEG_ABORT "abort\n"
#define FAULTY_JPEG_FREE "free\n"
#define FAULTY_JPEG_SEGMENT "segment\n"
#define FAULTY_JPEG_EXIT "exit\n"
#define FAULTY_JPEG_LOOP "loop\n"
#define FAULTY_JPEG_ALLOCATE "allocate\n"
// Attacks: opens a file, connects, starts a process, signals its parent, makes memory executable,
// and sends nonsense.
#define FAULTY_JPEG_OPEN "open\n"
#define FAULTY_JPEG_CONNECT "connect\n"
#define FAULTY_JPEG_FORK "fork\n"
#define FAULTY_JPEG_KILL "kill\n"
#define FAULTY_JPEG_EXECUTE "execute\n"
#define FAULTY_JPEG_FORGE "forge\n"
// Each row of pixels takes a tenth of a second, and the mark is written to standard error before
// the first row.
#define FAULTY_JPEG_SLOW "slow\n"
