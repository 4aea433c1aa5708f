// What can be done to a row that is an image: moved, turned, drawn with letters.
//
// An image is a row of (height, width) grey values, 0 for paper.
// Threads: pure functions. Errors: none; what is Required is checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trainyard::train {

struct Motion {
  float right = 0;  // pixels
  float down = 0;   // pixels
  float turn = 0;   // degrees, clockwise, about the middle
};

// At random, each way up to the limits; equal seeds give equal motions.
Motion random_motion(float shift_pixels_max, float rotate_degrees_max, uint64_t seed);

// The image after the motion, with values between pixels drawn straight (bilinear) and paper outside.
// Requires: pixels.size() is a multiple of width; out is equally long and another.
void move_image(std::span<const float> pixels, size_t width, const Motion& motion, std::span<float> out);

// Lines of text, two characters a pixel, from blank to full.
// Requires: pixels.size() is a multiple of width; full > 0.
std::vector<std::string> draw_image(std::span<const float> pixels, size_t width, float full);

}  // namespace trainyard::train
