// libjpeg-turbo and libpng themselves, for the peers of codec-bench. jpeglib.h needs FILE.
#include <stdio.h>

#include <jpeglib.h>
#include <png.h>
