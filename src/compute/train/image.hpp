// Shifts, rotates and draws rows that are images.
//
// An image is a row of (height, width) grey values; 0 is background.
// Threads: pure functions. Errors: none; requirements are checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trainyard::train {

struct Motion {
  float right = 0;     // pixels
  float down = 0;      // pixels
  float rotation = 0;  // degrees, clockwise, about the middle
};

// Returns a random motion within the limits in each direction; equal seeds give equal motions.
Motion random_motion(float shift_pixels_max, float rotate_degrees_max, uint64_t seed);

// Writes the moved image to `out`, with bilinear interpolation; pixels from outside of the image
// are background.
// Requires: pixels.size() is a multiple of width; out has the same size and does not overlap it.
void move_image(std::span<const float> pixels, size_t width, const Motion& motion,
                std::span<float> out);

// Draws an image as lines of text, two characters per pixel. `full` is the value of the darkest
// pixel.
// Requires: pixels.size() is a multiple of width; full > 0.
std::vector<std::string> draw_image(std::span<const float> pixels, size_t width, float full);

}  // namespace trainyard::train
