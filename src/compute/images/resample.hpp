// Resizes, crops and flips images.
//
// Threads: pure functions. Errors: none; requirements are checked.
#pragma once

#include "images/decode.hpp"

namespace trainyard::images {

// Resizes with a triangle filter, which averages all source pixels if the image becomes smaller.
// Requires: width, height >= 1.
Image resize(const Image& image, int width, int height);

// Resizes so that the shortest side has `pixels` pixels, and keeps the aspect ratio.
Image resize_shortest_side(const Image& image, int pixels);

// Returns a rectangle of the image. Requires: it lies within the image.
Image crop(const Image& image, int left, int top, int width, int height);

// Exchanges left and right, in place.
void flip(Image& image);

}  // namespace trainyard::images
