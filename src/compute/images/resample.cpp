#include "images/resample.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace trainyard::images {
namespace {

// The source pixels of one target pixel along an axis, and their weights, whose sum is 1.
struct Taps {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Taps> taps_of(int source, int target) {
  const double scale = double(source) / target;
  const double reach = std::max(1.0, scale);  // radius of the triangle filter, in source pixels
  std::vector<Taps> all(static_cast<size_t>(target));
  for (int i = 0; i < target; ++i) {
    const double centre = (i + 0.5) * scale - 0.5;
    Taps& taps = all[size_t(i)];
    taps.first = std::max(0, int(std::ceil(centre - reach)));
    const int last = std::min(source - 1, int(std::floor(centre + reach)));
    double sum = 0;
    for (int at = taps.first; at <= last; ++at) {
      const double weight = std::max(0.0, 1 - std::abs(at - centre) / reach);
      taps.weights.push_back(float(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = float(weight / sum);
  }
  return all;
}

}  // namespace

Image resize(const Image& image, int width, int height) {
  CHECK(width >= 1 && height >= 1, "an image has pixels");
  if (width == image.width && height == image.height) return image;
  const auto columns = taps_of(image.width, width), rows = taps_of(image.height, height);
  const auto channels = size_t(image.channels);
  // First resizes along the rows.
  std::vector<float> wide(size_t(width) * size_t(image.height) * channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < width; ++x) {
      const Taps& taps = columns[size_t(x)];
      float* out = &wide[(size_t(y) * size_t(width) + size_t(x)) * channels];
      for (size_t tap = 0; tap < taps.weights.size(); ++tap) {
        const uint8_t* in = image.at(taps.first + int(tap), y);
        for (size_t c = 0; c < channels; ++c) out[c] += taps.weights[tap] * float(in[c]);
      }
    }
  Image resized{width, height, image.channels, {}};
  const size_t row = resized.row_bytes();
  resized.pixels.resize(row * size_t(height));
  std::vector<float> sums(row);
  for (int y = 0; y < height; ++y) {
    const Taps& taps = rows[size_t(y)];
    std::fill(sums.begin(), sums.end(), 0.5f);  // rounds to the nearest value
    for (size_t tap = 0; tap < taps.weights.size(); ++tap) {
      const float* in = &wide[(size_t(taps.first) + tap) * row];
      for (size_t i = 0; i < row; ++i) sums[i] += taps.weights[tap] * in[i];
    }
    for (size_t i = 0; i < row; ++i)
      resized.pixels[size_t(y) * row + i] = uint8_t(std::clamp(sums[i], 0.0f, 255.0f));
  }
  return resized;
}

Image resize_shortest_side(const Image& image, int pixels) {
  const int shortest = std::min(image.width, image.height);
  const auto scaled = [&](int side) {
    return side == shortest ? pixels
                            : std::max(pixels, int(std::lround(double(side) * pixels / shortest)));
  };
  return resize(image, scaled(image.width), scaled(image.height));
}

Image crop(const Image& image, int left, int top, int width, int height) {
  CHECK(left >= 0 && top >= 0 && width >= 1 && height >= 1 && left <= image.width - width &&
            top <= image.height - height,
        "a crop lies within its image");
  Image part{width, height, image.channels, {}};
  part.pixels.reserve(part.row_bytes() * size_t(height));
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = image.at(left, top + y);
    part.pixels.insert(part.pixels.end(), row, row + part.row_bytes());
  }
  return part;
}

void flip(Image& image) {
  const auto channels = size_t(image.channels);
  for (int y = 0; y < image.height; ++y) {
    uint8_t* row = image.pixels.data() + size_t(y) * image.row_bytes();
    for (size_t left = 0, right = size_t(image.width) - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

}  // namespace trainyard::images
