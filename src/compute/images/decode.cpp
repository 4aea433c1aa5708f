#include "images/decode.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <string>
#include <utility>

// jpeglib.h needs size_t and FILE, and jerror.h the types of jpeglib.h.
#include <jpeglib.h>
//
#include <jerror.h>
#include <png.h>

#include "base/check.hpp"

namespace trainyard::images {
namespace {

constexpr std::string_view kJpegStart = "\xff\xd8\xff";
constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";

Result<void> check_size(int64_t width, int64_t height) {
  if (width < 1 || height < 1) return corrupt("the image has no pixels");
  if (width > kImagePixelsMax || height > kImagePixelsMax || width * height > kImagePixelsMax)
    return exhausted("the image has " + std::to_string(width) + " x " + std::to_string(height) +
                     " pixels, more than " + std::to_string(kImagePixelsMax));
  return ok();
}

// libjpeg reports errors by calling a function that must not return: it jumps to the caller.
// No object with a destructor may live in the frames that are jumped over.
struct JpegDecoder {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed{};
  char message[JMSG_LENGTH_MAX] = "";
  bool truncated = false;

  JpegDecoder() {
    state.err = jpeg_std_error(&errors);
    state.client_data = this;
    errors.error_exit = [](j_common_ptr common) {
      JpegDecoder& decoder = *static_cast<JpegDecoder*>(common->client_data);
      common->err->format_message(common, decoder.message);
      std::longjmp(decoder.failed, 1);
    };
    errors.output_message = [](j_common_ptr) {};
    errors.emit_message = [](j_common_ptr common, int level) {
      if (level >= 0) return;
      const int code = common->err->msg_code;
      if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)
        static_cast<JpegDecoder*>(common->client_data)->truncated = true;
    };
    progress.progress_monitor = [](j_common_ptr common) {
      const auto& read = *reinterpret_cast<j_decompress_ptr>(common);
      if (read.input_scan_number <= kJpegScansMax) return;
      JpegDecoder& decoder = *static_cast<JpegDecoder*>(common->client_data);
      std::snprintf(decoder.message, sizeof decoder.message, "more than %d scans", kJpegScansMax);
      std::longjmp(decoder.failed, 1);
    };
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&state); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Return false after an error, whose text is `message`.
  bool read_header(std::string_view bytes) {
    if (setjmp(failed) != 0) return false;
    jpeg_create_decompress(&state);
    state.progress = &progress;
    jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&state, TRUE);
    return true;
  }
  bool prepare(int channels, unsigned denominator) {
    if (setjmp(failed) != 0) return false;
    state.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    state.scale_num = 1;
    state.scale_denom = denominator;
    jpeg_start_decompress(&state);
    return true;
  }
  bool read_rows(uint8_t* pixels, size_t row_bytes) {
    if (setjmp(failed) != 0) return false;
    while (state.output_scanline < state.output_height) {
      JSAMPROW row = pixels + state.output_scanline * row_bytes;
      jpeg_read_scanlines(&state, &row, 1);
    }
    jpeg_finish_decompress(&state);
    return true;
  }
};

unsigned denominator_for(unsigned width, unsigned height, int shortest_side) {
  if (shortest_side <= 0) return 1;
  unsigned denominator = 1;
  while (denominator < 8 && std::min(width, height) / (2 * denominator) >= unsigned(shortest_side))
    denominator *= 2;
  return denominator;
}

Result<Image> decode_jpeg(std::string_view bytes, int channels, int shortest_side) {
  JpegDecoder decoder;
  const auto failure = [&] { return corrupt(std::string("invalid JPEG: ") + decoder.message); };
  if (!decoder.read_header(bytes)) return failure();
  TRY(check_size(decoder.state.image_width, decoder.state.image_height));
  const unsigned denominator =
      denominator_for(decoder.state.image_width, decoder.state.image_height, shortest_side);
  if (!decoder.prepare(channels, denominator)) return failure();
  CHECK(decoder.state.output_components == channels, "libjpeg converts to these colours");
  Image image;
  image.width = int(decoder.state.output_width);
  image.height = int(decoder.state.output_height);
  image.channels = channels;
  image.pixels.resize(image.row_bytes() * size_t(image.height));
  if (!decoder.read_rows(image.pixels.data(), image.row_bytes())) return failure();
  if (decoder.truncated) return corrupt("truncated JPEG: its data ends early");
  return image;
}

Result<Image> decode_png(std::string_view bytes, int channels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto failure = [&] {
    Error error = corrupt(std::string("invalid or truncated PNG: ") + png.message);
    png_image_free(&png);
    return error;
  };
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) return failure();
  if (const auto fits = check_size(png.width, png.height); !fits) {
    png_image_free(&png);
    return fits.error();
  }
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Image image;
  image.width = int(png.width);
  image.height = int(png.height);
  image.channels = channels;
  image.pixels.resize(image.row_bytes() * size_t(image.height));
  const png_color black{};
  if (!png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr)) return failure();
  return image;
}

}  // namespace

Result<Image> decode_image(std::string_view bytes, int channels, int shortest_side) {
  CHECK(channels == 1 || channels == 3, "an image is grey or coloured");
  if (bytes.size() > kImageBytesMax)
    return exhausted("the encoded image has " + std::to_string(bytes.size()) +
                     " bytes, more than " + std::to_string(kImageBytesMax));
  if (bytes.starts_with(kJpegStart)) return decode_jpeg(bytes, channels, shortest_side);
  if (bytes.starts_with(kPngStart)) return decode_png(bytes, channels);
  return corrupt("the bytes are neither a JPEG nor a PNG image");
}

}  // namespace trainyard::images
