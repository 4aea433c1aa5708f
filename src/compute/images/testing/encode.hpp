// Encodes images and records for tests.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// jpeglib.h needs size_t and FILE.
#include <jpeglib.h>
#include <png.h>

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "images/decode.hpp"

namespace trainyard::images::testing {

inline std::string to_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = png_uint_32(image.width);
  png.height = png_uint_32(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  CHECK(png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr),
        "the image can be encoded");
  bytes.resize(size);
  return bytes;
}

inline std::string to_jpeg(const Image& image, bool progressive = false) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT: the type of libjpeg
  jpeg_mem_dest(&state, &memory, &size);
  state.image_width = JDIMENSION(image.width);
  state.image_height = JDIMENSION(image.height);
  state.input_components = image.channels;
  state.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 95, TRUE);
  if (progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(image.at(0, int(state.next_scanline)));
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&state);
  std::free(memory);
  return bytes;
}

// Returns the header of a part of a record.
inline std::string head(uint32_t flag, size_t length) {
  std::string bytes;
  append_little_endian(bytes, 0xced7230a, 4);
  append_little_endian(bytes, flag << 29 | length, 4);
  return bytes;
}

inline std::string framed(uint32_t flag, const std::string& payload) {
  return head(flag, payload.size()) + payload + std::string((4 - payload.size() % 4) % 4, '\0');
}

// Returns a record with one label.
inline std::string record_of(float label, const std::string& image) {
  std::string record(4, '\0');
  record.append(reinterpret_cast<const char*>(&label), 4);
  return record + std::string(16, '\0') + image;
}

}  // namespace trainyard::images::testing
