// Changes images at random as SageMaker's image classification documents it: colours, rotation,
// shear and aspect ratio.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>

#include "images/decode.hpp"

namespace trainyard::images {

// In the units of OpenCV's HLS: hue in half degrees, lightness and saturation of 255.
struct ColourShift {
  double hue = 0, lightness = 0, saturation = 0;
};
// The documented ranges, in both directions.
inline constexpr ColourShift kColourShiftMax = {36, 50, 50};

// Lightness and saturation stop at their limits, and hue wraps around. Grey images have lightness
// only.
void shift_colours(Image& image, const ColourShift& shift);

struct Distortion {
  double degrees = 0;  // of a rotation about the middle
  double shear = 0;
  double aspect = 1;  // width by height
};
// The documented ranges, in both directions; of the aspect ratio about 1.
inline constexpr Distortion kDistortionMax = {10, 0.1, 0.25};

// Returns an image of the same size. Pixels from outside of the image are white.
Image distort(const Image& image, const Distortion& distortion);

// Equal seeds give equal changes within the ranges.
ColourShift random_colour_shift(uint64_t seed);
Distortion random_distortion(uint64_t seed);

}  // namespace trainyard::images
