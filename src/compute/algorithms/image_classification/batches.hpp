// Reads batches of images as tensors: decodes, resizes, crops and normalises them.
//
// Images for training must be at least as large as image_shape. The central part is used; with
// augmentation, a random part, which is flipped with probability 1/2. Images to score have any size
// and are resized to image_shape. Random choices depend on the seed, the epoch and the image, but
// not on the rank.
//
// Threads: any. Errors: those of files and images, naming the image; invalid, for images that are
// smaller than image_shape and for invalid labels.
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

// Returns an image of the shape. Without `seed` it is the central part.
Result<images::Image> prepare(std::string_view bytes, const Preparation& preparation,
                              std::optional<uint64_t> seed);
// Returns an image of the shape for scoring.
Result<images::Image> prepare_for_scoring(std::string_view bytes, const ImageShape& shape);

// Writes the pixels as normalised planes. Requires: (channels, height, width) floats at `out`.
void write_planes(const images::Image& image, float* out);

// Reads and prepares the images with these indices. `epoch_seed` seeds the augmentation; without it
// there is none.
Result<Batch> read_batch(const images::Collection& collection, std::vector<uint32_t> indices,
                         const Preparation& preparation, std::optional<uint64_t> epoch_seed);

}  // namespace trainyard::algorithms
