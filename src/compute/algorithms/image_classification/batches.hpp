// Reads batches of images as tensors: decoded, resized, cropped, normalised.
//
// Training needs images that are at least as large as image_shape; the middle is used, or with
// augmentation a random part, flipped half of the time. Scoring resizes any image to image_shape.
// Random choices depend on seed, epoch and image, not on the rank.
//
// Threads: from anywhere. Errors: of files and images, naming the image; invalid, for images that
// are smaller than image_shape and for wrong labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/image_classification/settings.hpp"
#include "base/result.hpp"
#include "images/collection.hpp"
#include "images/decode.hpp"
#include "parallel/torch.hpp"

namespace trainyard::algorithms {

struct Batch {
  std::vector<uint32_t> indices;
  at::Tensor images;  // (count, channels, height, width), f32, normalised
  at::Tensor labels;  // (count), i64
};

struct Preparation {
  ImageShape shape;
  int64_t resize = 0;
  Augmentation augmentation = Augmentation::none;
};

// Checks that every image has one label, an integer from 0 to classes - 1.
Result<void> check_labels(const images::Collection& collection, int64_t classes);

// Returns an image of the shape. Without `seed`, the middle of the image.
Result<images::Image> prepare(std::string_view bytes, const Preparation& preparation,
                              std::optional<uint64_t> seed);
// Returns an image of the shape for scoring.
Result<images::Image> prepare_for_scoring(std::string_view bytes, const ImageShape& shape);

// Writes the pixels as normalised planes. Requires: (channels, height, width) floats at `out`.
void write_planes(const images::Image& image, float* out);

// With `epoch_seed`, random choices are made if the preparation requests augmentation.
Result<Batch> read_batch(const images::Collection& collection, std::vector<uint32_t> indices,
                         const Preparation& preparation, std::optional<uint64_t> epoch_seed);

}  // namespace trainyard::algorithms
