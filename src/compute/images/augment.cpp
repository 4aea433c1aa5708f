#include "images/augment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.hpp"

namespace trainyard::images {
namespace {

constexpr double kFull = 255;       // the largest lightness and saturation
constexpr double kHueCircle = 180;  // half degrees
constexpr double kOutside = 255;    // the value of pixels outside of an image

struct Hls {
  double hue = 0, lightness = 0, saturation = 0;
};

Hls to_hls(const uint8_t* rgb) {
  const double red = rgb[0], green = rgb[1], blue = rgb[2];
  const double most = std::max({red, green, blue}), least = std::min({red, green, blue});
  Hls hls{0, (most + least) / 2, 0};
  const double range = most - least;
  if (range == 0) return hls;
  hls.saturation =
      kFull * range / (hls.lightness <= kFull / 2 ? most + least : 2 * kFull - most - least);
  const double sixth = kHueCircle / 6;
  if (most == red) {
    hls.hue = sixth * (green - blue) / range;
  } else if (most == green) {
    hls.hue = sixth * (2 + (blue - red) / range);
  } else {
    hls.hue = sixth * (4 + (red - green) / range);
  }
  return hls;
}

uint8_t to_value(double value) { return uint8_t(std::clamp(value + 0.5, 0.0, kFull)); }

void from_hls(const Hls& hls, uint8_t* rgb) {
  const double lightness = hls.lightness / kFull, saturation = hls.saturation / kFull;
  const double range = (1 - std::abs(2 * lightness - 1)) * saturation;
  const double least = lightness - range / 2;
  const double hue = std::fmod(std::fmod(hls.hue, kHueCircle) + kHueCircle, kHueCircle);
  for (int channel = 0; channel < 3; ++channel) {
    // The distance from this channel's hue, on a circle of length 6.
    const double away = std::abs(std::remainder(6 * hue / kHueCircle - 2 * channel, 6.0));
    rgb[channel] = to_value(kFull * (least + range * std::clamp(2 - away, 0.0, 1.0)));
  }
}

double uniform(SeededRandom& random, double least, double most) {
  return least + (most - least) * double(random.next() >> 11) / 9007199254740992.0;  // 2^53
}

double value_at(const Image& image, int x, int y, int channel) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return kOutside;
  return image.at(x, y)[channel];
}

double interpolated(const Image& image, double x, double y, int channel) {
  const int left = int(std::floor(x)), top = int(std::floor(y));
  const double right_weight = x - left, down_weight = y - top;
  const double upper = value_at(image, left, top, channel) * (1 - right_weight) +
                       value_at(image, left + 1, top, channel) * right_weight;
  const double lower = value_at(image, left, top + 1, channel) * (1 - right_weight) +
                       value_at(image, left + 1, top + 1, channel) * right_weight;
  return upper * (1 - down_weight) + lower * down_weight;
}

}  // namespace

void shift_colours(Image& image, const ColourShift& shift) {
  if (image.channels == 1) {
    for (uint8_t& each : image.pixels) each = to_value(each + shift.lightness);
    return;
  }
  for (size_t at = 0; at + 2 < image.pixels.size(); at += 3) {
    Hls hls = to_hls(&image.pixels[at]);
    hls.hue += shift.hue;
    hls.lightness = std::clamp(hls.lightness + shift.lightness, 0.0, kFull);
    hls.saturation = std::clamp(hls.saturation + shift.saturation, 0.0, kFull);
    from_hls(hls, &image.pixels[at]);
  }
}

Image distort(const Image& image, const Distortion& distortion) {
  const double angle = distortion.degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double height = 2 / (1 + distortion.aspect), width = distortion.aspect * height;
  // The matrix of MXNet's augmenter, whose inverse maps target to source.
  const double a = height * cosine - distortion.shear * sine * width;
  const double b = height * sine + distortion.shear * cosine * width;
  const double c = -sine * width, d = cosine * width;
  const double determinant = a * d - b * c;
  const double middle_x = (image.width - 1) / 2.0, middle_y = (image.height - 1) / 2.0;
  Image distorted{image.width, image.height, image.channels, {}};
  distorted.pixels.reserve(image.pixels.size());
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const double right = x - middle_x, down = y - middle_y;
      const double from_x = middle_x + (d * right - b * down) / determinant;
      const double from_y = middle_y + (a * down - c * right) / determinant;
      for (int channel = 0; channel < image.channels; ++channel)
        distorted.pixels.push_back(to_value(interpolated(image, from_x, from_y, channel)));
    }
  return distorted;
}

ColourShift random_colour_shift(uint64_t seed) {
  SeededRandom random(seed);
  const auto draw = [&](double most) { return uniform(random, -most, most); };
  const double hue = draw(kColourShiftMax.hue), lightness = draw(kColourShiftMax.lightness);
  return {hue, lightness, draw(kColourShiftMax.saturation)};
}

Distortion random_distortion(uint64_t seed) {
  SeededRandom random(seed);
  const auto draw = [&](double most) { return uniform(random, -most, most); };
  const double degrees = draw(kDistortionMax.degrees), shear = draw(kDistortionMax.shear);
  return {degrees, shear, 1 + draw(kDistortionMax.aspect)};
}

}  // namespace trainyard::images
