// Preloaded before libjpeg, `jpeg_read_header` crashes on an image that holds one of these marks,
// like a decoder with a bug. It has no functions to call.
#define FAULTY_JPEG_ABORT "\nFaultyJPEG: abort\n"
#define FAULTY_JPEG_SEGMENT "\nFaultyJPEG: segment\n"
// Each row of pixels takes a tenth of a second, and the mark is written to standard error before
// the first row.
#define FAULTY_JPEG_SLOW "\nFaultyJPEG: slow\n"
