// Preloaded before libjpeg, `jpeg_read_header` dies of an image that holds one of these marks, as a
// decoder with a bug would. It has nothing to call.
#define FAULTY_JPEG_ABORT "\nFaultyJPEG: abort\n"
#define FAULTY_JPEG_SEGMENT "\nFaultyJPEG: segment\n"
// Each row of pixels takes a tenth of a second, and the mark is written to standard error as the first
// one is asked for.
#define FAULTY_JPEG_SLOW "\nFaultyJPEG: slow\n"
