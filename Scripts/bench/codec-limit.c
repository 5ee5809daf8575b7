// Measures the codecs alone. Decodes every JPEG of a folder to RGB and encodes it again at quality
// 85 through libjpeg's scanline interface: 4:2:0, otherwise the library's defaults. Decodes every
// PNG with libpng; --png-encode also encodes it again at libpng's defaults. One thread; files are
// read before the clock starts. Prints Mpixel, CPU seconds and Mpixel/s for each format.
//
//     cc -O2 codec-limit.c -ljpeg -lpng -o codec-limit && ./codec-limit [--png-encode] FOLDER
//
// The input is trusted: an error of either library ends the program.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>
#include <png.h>

typedef struct {
    double pixels;
    double seconds;
    size_t bytes_in;
    size_t bytes_out;
    int files;
} tally;

typedef struct {
    unsigned char *bytes;
    size_t length;
    size_t offset;
} buffer;

static double cpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *allocated(size_t size) {
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL) {
        fputs("codec-limit: no memory\n", stderr);
        exit(1);
    }
    return memory;
}

static buffer read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    buffer result = {NULL, 0, 0};
    if (file == NULL) return result;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    if (size > 0) {
        result.bytes = allocated((size_t)size);
        result.length = fread(result.bytes, 1, (size_t)size, file);
    }
    fclose(file);
    return result;
}

static void run_jpeg(const buffer *source, tally *sum) {
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct input;
    input.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&input);
    jpeg_mem_src(&input, source->bytes, source->length);
    jpeg_read_header(&input, TRUE);
    if (input.jpeg_color_space != JCS_GRAYSCALE) input.out_color_space = JCS_RGB;
    jpeg_start_decompress(&input);
    size_t stride = (size_t)input.output_width * (size_t)input.output_components;
    unsigned char *pixels = allocated(stride * input.output_height);
    while (input.output_scanline < input.output_height) {
        JSAMPROW row = pixels + input.output_scanline * stride;
        jpeg_read_scanlines(&input, &row, 1);
    }
    struct jpeg_compress_struct output;
    output.err = &errors;
    jpeg_create_compress(&output);
    unsigned char *encoded = NULL;
    unsigned long length = 0;
    jpeg_mem_dest(&output, &encoded, &length);
    output.image_width = input.output_width;
    output.image_height = input.output_height;
    output.input_components = input.output_components;
    output.in_color_space = input.out_color_space;
    jpeg_set_defaults(&output);
    jpeg_set_quality(&output, 85, TRUE);
    jpeg_start_compress(&output, TRUE);
    while (output.next_scanline < output.image_height) {
        JSAMPROW row = pixels + output.next_scanline * stride;
        jpeg_write_scanlines(&output, &row, 1);
    }
    jpeg_finish_compress(&output);
    sum->pixels += (double)input.output_width * input.output_height;
    sum->bytes_out += length;
    jpeg_finish_decompress(&input);
    jpeg_destroy_compress(&output);
    jpeg_destroy_decompress(&input);
    free(encoded);
    free(pixels);
}

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

static void run_png(buffer *source, tally *decoding, tally *encoding) {
    double begin = cpu_seconds();
    png_structp input = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(input);
    png_set_read_fn(input, source, read_bytes);
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
    decoding->seconds += cpu_seconds() - begin;
    decoding->pixels += (double)width * height;
    decoding->bytes_in += source->length;
    decoding->files++;
    if (encoding != NULL) {
        begin = cpu_seconds();
        png_structp output = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
        size_t length = 0;
        png_set_write_fn(output, &length, count_bytes, no_flush);
        png_set_IHDR(
            output, info, width, height, png_get_bit_depth(input, info),
            png_get_color_type(input, info), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
            PNG_FILTER_TYPE_DEFAULT);
        png_write_info(output, info);
        for (png_uint_32 y = 0; y < height; y++) png_write_row(output, pixels + y * stride);
        png_write_end(output, NULL);
        png_destroy_write_struct(&output, NULL);
        encoding->seconds += cpu_seconds() - begin;
        encoding->pixels += (double)width * height;
        encoding->bytes_in += source->length;
        encoding->bytes_out += length;
        encoding->files++;
    }
    png_destroy_read_struct(&input, &info, NULL);
    free(pixels);
}

static void print(const char *name, const tally *sum) {
    if (sum->files == 0) return;
    printf(
        "%-12s %6d files  %9.2f Mpixel  %8.3f CPU s  %7.1f Mpixel/s  %zu -> %zu bytes\n", name,
        sum->files, sum->pixels / 1e6, sum->seconds, sum->pixels / 1e6 / sum->seconds,
        sum->bytes_in, sum->bytes_out);
}

int main(int count, char **arguments) {
    int encodes = count == 3 && strcmp(arguments[1], "--png-encode") == 0;
    if (count != 2 + encodes) {
        fputs("usage: codec-limit [--png-encode] FOLDER\n", stderr);
        return 64;
    }
    const char *folder = arguments[count - 1];
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        perror(folder);
        return 1;
    }
    tally jpeg = {0}, decoding = {0}, encoding = {0};
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.') continue;
        buffer source = read_file(path);
        if (source.length > 8 && memcmp(source.bytes, "\x89PNG\r\n\x1A\n", 8) == 0) {
            run_png(&source, &decoding, encodes ? &encoding : NULL);
        } else if (source.length > 3 && memcmp(source.bytes, "\xFF\xD8\xFF", 3) == 0) {
            double begin = cpu_seconds();
            run_jpeg(&source, &jpeg);
            jpeg.seconds += cpu_seconds() - begin;
            jpeg.bytes_in += source.length;
            jpeg.files++;
        }
        free(source.bytes);
    }
    closedir(directory);
    print("jpeg", &jpeg);
    print("png decode", &decoding);
    print("png encode", &encoding);
    return 0;
}
