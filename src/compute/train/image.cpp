#include "train/image.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/random.hpp"

namespace trainyard::train {

Motion random_motion(float shift_pixels_max, float rotate_degrees_max, uint64_t seed) {
  SeededRandom random(seed);
  const auto each_way = [&](float most) {
    return most * (2.0f * float(random.next() >> 40) * 0x1.0p-24f - 1.0f);
  };
  Motion motion;
  motion.right = each_way(shift_pixels_max);
  motion.down = each_way(shift_pixels_max);
  motion.rotation = each_way(rotate_degrees_max);
  return motion;
}

void move_image(std::span<const float> pixels, size_t width, const Motion& motion,
                std::span<float> out) {
  CHECK(width > 0 && pixels.size() % width == 0 && out.size() == pixels.size(),
        "pixels.size() must be a multiple of width");
  const auto columns = int(width);
  const auto lines = int(pixels.size() / width);
  const auto at = [&](int line, int column) {
    if (line < 0 || line >= lines || column < 0 || column >= columns) return 0.0f;
    return pixels[size_t(line) * width + size_t(column)];
  };
  // Computes for each pixel of `out` the position in the image from which it is interpolated.
  const float radians = motion.rotation * std::numbers::pi_v<float> / 180.0f;
  const float cosine = std::cos(radians);
  const float sine = std::sin(radians);
  const float middle_column = float(columns - 1) / 2;
  const float middle_line = float(lines - 1) / 2;
  for (int line = 0; line < lines; ++line) {
    for (int column = 0; column < columns; ++column) {
      const float x = float(column) - middle_column - motion.right;
      const float y = float(line) - middle_line - motion.down;
      const float from_column = cosine * x + sine * y + middle_column;
      const float from_line = -sine * x + cosine * y + middle_line;
      const int left = int(std::floor(from_column));
      const int top = int(std::floor(from_line));
      const float right_share = from_column - float(left);
      const float bottom_share = from_line - float(top);
      out[size_t(line) * width + size_t(column)] =
          (1 - bottom_share) *
              ((1 - right_share) * at(top, left) + right_share * at(top, left + 1)) +
          bottom_share *
              ((1 - right_share) * at(top + 1, left) + right_share * at(top + 1, left + 1));
    }
  }
}

std::vector<std::string> draw_image(std::span<const float> pixels, size_t width, float full) {
  CHECK(width > 0 && pixels.size() % width == 0 && full > 0,
        "pixels.size() must be a multiple of width");
  static constexpr std::string_view kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < pixels.size(); begin += width) {
    std::string line;
    for (const float pixel : pixels.subspan(begin, width)) {
      line += kShades[size_t(std::lround(std::clamp(pixel / full, 0.0f, 1.0f) * 4))];
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace trainyard::train
