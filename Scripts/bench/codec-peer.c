// The reference for codec-bench: libpng's and libjpeg-turbo's own pixel interfaces, on one thread,
// and the difference between JPEGs.
//
//     cc -O2 codec-peer.c -ljpeg -lpng -lm -o codec-peer
//     codec-peer png ROUNDS FILE...          encodes at libpng's defaults (level 6, adaptive
//                                            filters, the file's own colour type and depth)
//     codec-peer jpeg QUALITY ROUNDS FILE... decodes to RGB and encodes, 4:2:0
//     codec-peer limit FOLDER                decodes and encodes every JPEG at quality 85, and
//                                            decodes every PNG: the limit of other programs
//     codec-peer psnr QUALITY SOURCE OTHER   decibels against the source, of the other file and of
//                                            the source re-encoded from pixels at equal size,
//                                            interpolated between the two nearest qualities by the
//                                            logarithm of the size
//
// `png` and `jpeg` print a line for each file: pixels, CPU seconds (the minimum of the rounds; for
// PNG of encoding alone), bytes, name, separated by tabs. Files are read before the clock starts.
// The input is trusted: an error of either library ends the program.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>
#include <png.h>

typedef struct {
    unsigned char *bytes;
    size_t length;
    size_t offset;
} buffer;

typedef struct {
    unsigned char *samples;
    unsigned width;
    unsigned height;
    int channels;
} picture;

static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    fprintf(stderr, "codec-peer: %s\n", what);
    exit(1);
}

static void *allocated(size_t size) {
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL) fail("no memory");
    return memory;
}

static buffer read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail(path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    buffer result = {allocated((size_t)size), (size_t)size, 0};
    if (fread(result.bytes, 1, result.length, file) != result.length) fail(path);
    fclose(file);
    return result;
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void report(const char *path, double pixels, double seconds, size_t bytes) {
    printf("%.0f\t%.9f\t%zu\t%s\n", pixels, seconds, bytes, name_of(path));
}

// MARK: - PNG

static void read_bytes(png_structp png, png_bytep bytes, size_t count) {
    buffer *source = png_get_io_ptr(png);
    if (count > source->length - source->offset) png_error(png, "short file");
    memcpy(bytes, source->bytes + source->offset, count);
    source->offset += count;
}

static void count_bytes(png_structp png, png_bytep bytes, size_t count) {
    (void)bytes;
    *(size_t *)png_get_io_ptr(png) += count;
}

static void no_flush(png_structp png) { (void)png; }

/// Without rounds the file is only decoded.
static void run_png(const char *path, int rounds) {
    buffer source = read_file(path);
    png_structp input = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(input);
    png_set_read_fn(input, &source, read_bytes);
    png_read_info(input, info);
    int passes = png_set_interlace_handling(input);
    png_read_update_info(input, info);
    size_t stride = png_get_rowbytes(input, info);
    png_uint_32 width = png_get_image_width(input, info);
    png_uint_32 height = png_get_image_height(input, info);
    unsigned char *pixels = allocated(stride * height);
    for (int pass = 0; pass < passes; pass++) {
        for (png_uint_32 y = 0; y < height; y++) png_read_row(input, pixels + y * stride, NULL);
    }
    png_read_end(input, NULL);
    double least = INFINITY;
    size_t length = 0;
    for (int round = 0; round < rounds; round++) {
        double begin = cpu_seconds();
        png_structp output = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
        png_infop made = png_create_info_struct(output);
        length = 0;
        png_set_write_fn(output, &length, count_bytes, no_flush);
        png_set_IHDR(
            output, made, width, height, png_get_bit_depth(input, info),
            png_get_color_type(input, info), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
            PNG_FILTER_TYPE_DEFAULT);
        // Keep the meaning of pixels only; everything else would cost bytes that codec-bench does
        // not spend.
        png_colorp palette;
        png_bytep alphas;
        png_color_16p key;
        int count;
        if (png_get_PLTE(input, info, &palette, &count)) {
            png_set_PLTE(output, made, palette, count);
        }
        if (png_get_tRNS(input, info, &alphas, &count, &key)) {
            png_set_tRNS(output, made, alphas, count, key);
        }
        png_write_info(output, made);
        for (png_uint_32 y = 0; y < height; y++) png_write_row(output, pixels + y * stride);
        png_write_end(output, NULL);
        png_destroy_write_struct(&output, &made);
        least = fmin(least, cpu_seconds() - begin);
    }
    if (rounds > 0) report(path, (double)width * height, least, length);
    png_destroy_read_struct(&input, &info, NULL);
    free(pixels);
    free(source.bytes);
}

// MARK: - JPEG

static picture decoded(const unsigned char *bytes, size_t length) {
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct input;
    input.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&input);
    jpeg_mem_src(&input, bytes, length);
    jpeg_read_header(&input, TRUE);
    if (input.jpeg_color_space != JCS_GRAYSCALE) input.out_color_space = JCS_RGB;
    jpeg_start_decompress(&input);
    picture result = {NULL, input.output_width, input.output_height, input.output_components};
    size_t stride = (size_t)result.width * (size_t)result.channels;
    result.samples = allocated(stride * result.height);
    while (input.output_scanline < input.output_height) {
        JSAMPROW row = result.samples + input.output_scanline * stride;
        jpeg_read_scanlines(&input, &row, 1);
    }
    jpeg_finish_decompress(&input);
    jpeg_destroy_decompress(&input);
    return result;
}

static buffer encoded(const picture *source, int quality) {
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct output;
    output.err = jpeg_std_error(&errors);
    jpeg_create_compress(&output);
    buffer result = {NULL, 0, 0};
    unsigned long length = 0;
    jpeg_mem_dest(&output, &result.bytes, &length);
    output.image_width = source->width;
    output.image_height = source->height;
    output.input_components = source->channels;
    output.in_color_space = source->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&output);
    jpeg_set_quality(&output, quality, TRUE);
    jpeg_start_compress(&output, TRUE);
    size_t stride = (size_t)source->width * (size_t)source->channels;
    while (output.next_scanline < output.image_height) {
        JSAMPROW row = source->samples + output.next_scanline * stride;
        jpeg_write_scanlines(&output, &row, 1);
    }
    jpeg_finish_compress(&output);
    jpeg_destroy_compress(&output);
    result.length = length;
    return result;
}

static void run_jpeg(const char *path, int quality, int rounds) {
    buffer source = read_file(path);
    double least = INFINITY, pixels = 0;
    size_t length = 0;
    for (int round = 0; round < rounds; round++) {
        double begin = cpu_seconds();
        picture picture = decoded(source.bytes, source.length);
        buffer output = encoded(&picture, quality);
        least = fmin(least, cpu_seconds() - begin);
        pixels = (double)picture.width * picture.height;
        length = output.length;
        free(output.bytes);
        free(picture.samples);
    }
    report(path, pixels, least, length);
    free(source.bytes);
}

static double decibels(const picture *source, const picture *other) {
    size_t count = (size_t)source->width * source->height * (size_t)source->channels;
    if (source->width != other->width || source->height != other->height
        || source->channels != other->channels) {
        fail("pictures of different sizes");
    }
    double sum = 0;
    for (size_t index = 0; index < count; index++) {
        double difference = (double)source->samples[index] - (double)other->samples[index];
        sum += difference * difference;
    }
    return 10 * log10(255.0 * 255.0 * (double)count / sum);
}

static void run_psnr(int quality, const char *source_path, const char *other_path) {
    buffer source = read_file(source_path), other = read_file(other_path);
    picture original = decoded(source.bytes, source.length);
    picture changed = decoded(other.bytes, other.length);
    double below = 0, below_size = 0, found = 0;
    // Starts well below the other file's quality.
    for (int next = quality > 30 ? quality - 30 : 1; next <= 100; next++) {
        buffer output = encoded(&original, next);
        picture pixels = decoded(output.bytes, output.length);
        found = decibels(&original, &pixels);
        double size = (double)output.length, wanted = (double)other.length;
        free(pixels.samples);
        free(output.bytes);
        if (size >= wanted) {
            if (below_size > 0) {
                found = below
                    + (found - below) * log(wanted / below_size) / log(size / below_size);
            }
            break;
        }
        below = found;
        below_size = size;
    }
    printf("%.4f\t%.4f\n", decibels(&original, &changed), found);
}

static void run_limit(const char *folder) {
    DIR *directory = opendir(folder);
    if (directory == NULL) fail(folder);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        buffer source = read_file(path);
        int is_png = source.length > 8 && memcmp(source.bytes, "\x89PNG", 4) == 0;
        int is_jpeg = source.length > 3 && memcmp(source.bytes, "\xFF\xD8\xFF", 3) == 0;
        free(source.bytes);
        if (is_png) run_png(path, 0);
        if (is_jpeg) run_jpeg(path, 85, 1);
    }
    closedir(directory);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    int number = count > 2 ? atoi(arguments[2]) : 0;
    if (strcmp(mode, "png") == 0 && count > 3 && number > 0) {
        for (int index = 3; index < count; index++) run_png(arguments[index], number);
    } else if (strcmp(mode, "jpeg") == 0 && count > 4 && number > 0 && atoi(arguments[3]) > 0) {
        for (int index = 4; index < count; index++) {
            run_jpeg(arguments[index], number, atoi(arguments[3]));
        }
    } else if (strcmp(mode, "limit") == 0 && count == 3) {
        run_limit(arguments[2]);
    } else if (strcmp(mode, "psnr") == 0 && count == 5 && number > 0) {
        run_psnr(number, arguments[3], arguments[4]);
    } else {
        fputs(
            "usage: codec-peer png ROUNDS FILE... | jpeg QUALITY ROUNDS FILE... | "
            "limit FOLDER | psnr QUALITY SOURCE OTHER\n", stderr);
        return 64;
    }
    return 0;
}
