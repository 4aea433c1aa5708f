#include "algorithms/image_classification/batches.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/image_classification/order.hpp"
#include "base/random.hpp"
#include "images/augment.hpp"
#include "images/resample.hpp"

namespace trainyard::algorithms {
namespace {

// Mean and standard deviation of a colour in photographs. The values of grey images are in between.
struct Range {
  float mean, deviation;
};
constexpr Range kColours[3] = {{123.68f, 58.393f}, {116.779f, 57.12f}, {103.939f, 57.375f}};
constexpr Range kGrey = {114.8f, 57.63f};

}  // namespace

Result<void> check_labels(const images::Collection& collection, int64_t classes) {
  for (size_t image = 0; image < collection.size(); ++image) {
    const auto& labels = collection.labels(image);
    if (labels.size() != 1)
      return invalid("image " + collection.name(image) + " has " + std::to_string(labels.size()) +
                     " labels, but images with several labels (multi_label) are not supported");
    const float label = labels[0];
    if (!(label >= 0 && label < float(classes)) || label != std::floor(label)) {
      std::string text = std::to_string(label);
      if (label == std::floor(label) && std::abs(label) < 1e9f)
        text = std::to_string(int64_t(label));
      return invalid("label " + text + " of image " + collection.name(image) +
                     " is out of range: num_classes is " + std::to_string(classes) +
                     ", so labels are integers from 0 to " + std::to_string(classes - 1));
    }
  }
  return ok();
}

Result<images::Image> prepare(std::string_view bytes, const Preparation& preparation,
                              std::optional<uint64_t> seed) {
  const ImageShape& shape = preparation.shape;
  images::Image image = TRY(images::decode_image(bytes, shape.channels, int(preparation.resize)));
  if (preparation.resize > 0) image = images::resize_shortest_side(image, int(preparation.resize));
  const int right = image.width - shape.width, down = image.height - shape.height;
  if (right < 0 || down < 0)
    return invalid("the image has " + std::to_string(image.width) + " x " +
                   std::to_string(image.height) + " pixels, fewer than image_shape " +
                   to_string(shape) + ": use larger images, or the hyperparameter resize");
  if (!seed || preparation.augmentation == Augmentation::none)
    return images::crop(image, right / 2, down / 2, shape.width, shape.height);
  SeededRandom random(*seed);
  if (preparation.augmentation >= Augmentation::crop_color_transform)
    image = images::distort(image, images::random_distortion(random.next()));
  const int left = int(random.below(uint64_t(right) + 1));
  const int top = int(random.below(uint64_t(down) + 1));
  images::Image part = images::crop(image, left, top, shape.width, shape.height);
  if (preparation.augmentation >= Augmentation::crop_color)
    images::shift_colours(part, images::random_colour_shift(random.next()));
  if (random.chance(2)) images::flip(part);
  return part;
}

Result<images::Image> prepare_for_scoring(std::string_view bytes, const ImageShape& shape) {
  const images::Image image =
      TRY(images::decode_image(bytes, shape.channels, std::max(shape.width, shape.height)));
  return images::resize(image, shape.width, shape.height);
}

void write_planes(const images::Image& image, float* out) {
  const size_t pixels = size_t(image.width) * size_t(image.height);
  const auto channels = size_t(image.channels);
  for (size_t channel = 0; channel < channels; ++channel) {
    const Range& range = channels == 1 ? kGrey : kColours[channel];
    for (size_t i = 0; i < pixels; ++i)
      *out++ = (float(image.pixels[i * channels + channel]) - range.mean) / range.deviation;
  }
}

Result<Batch> read_batch(const images::Collection& collection, std::vector<uint32_t> indices,
                         const Preparation& preparation, std::optional<uint64_t> epoch_seed) {
  const ImageShape& shape = preparation.shape;
  Batch batch;
  batch.images =
      at::empty({int64_t(indices.size()), shape.channels, shape.height, shape.width}, at::kFloat);
  batch.labels = at::empty({int64_t(indices.size())}, at::kLong);
  auto* pixels = static_cast<float*>(batch.images.data_ptr());
  auto* labels = static_cast<int64_t*>(batch.labels.data_ptr());
  for (const uint32_t index : indices) {
    const std::string bytes = TRY(collection.read(index).in("image " + collection.name(index)));
    std::optional<uint64_t> seed;
    if (epoch_seed) seed = seed_of(*epoch_seed, index, 0);
    const images::Image image =
        TRY(prepare(bytes, preparation, seed).in("image " + collection.name(index)));
    write_planes(image, pixels);
    pixels += image.pixels.size();
    *labels++ = int64_t(collection.labels(index)[0]);
  }
  batch.indices = std::move(indices);
  return batch;
}

}  // namespace trainyard::algorithms
