// Changes colours, rotation, shear and aspect ratio of images at random, as SageMaker documents it
// for image classification.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>

#include "images/decode.hpp"

namespace trainyard::images {

// A change of colours in the units of OpenCV's HLS: hue in half degrees, lightness and saturation
// from 0 to 255.
struct ColourShift {
  double hue = 0, lightness = 0, saturation = 0;
};
// The documented ranges, in both directions.
inline constexpr ColourShift kColourShiftMax = {36, 50, 50};

// Shifts colours in place. Lightness and saturation are clamped to their limits, and hue wraps
// around. Grey images have lightness only.
void shift_colours(Image& image, const ColourShift& shift);

struct Distortion {
  double degrees = 0;  // rotation about the centre
  double shear = 0;
  double aspect = 1;  // width / height
};
// The documented ranges, in both directions. The range of the aspect ratio is around 1.
inline constexpr Distortion kDistortionMax = {10, 0.1, 0.25};

// Returns an image of the same size. Pixels from outside of the image are white.
Image distort(const Image& image, const Distortion& distortion);

// Return random changes within the ranges; equal seeds give equal changes.
ColourShift random_colour_shift(uint64_t seed);
Distortion random_distortion(uint64_t seed);

}  // namespace trainyard::images
