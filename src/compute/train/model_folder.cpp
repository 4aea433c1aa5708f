// Saves, loads and compares models.
#include <cmath>

#include "os/files.hpp"
#include "train/model.hpp"

namespace trainyard::train {
namespace {

constexpr size_t kWeightsBytesMax = size_t{1} << 32;  // much more than this trainer writes

double mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * double(value);
  return values.empty() ? 0 : sum / double(values.size());
}

}  // namespace

Result<void> save_model(const Model& model, const std::string& folder) {
  TRY(os::make_directories(folder));
  TRY(os::write_file_durably(folder + "/" + std::string(kWeightsFile), encode_weights(model),
                             0644));
  return os::write_file_durably(folder + "/" + std::string(kDescriptionFile),
                                encode_description(model), 0644);
}

Result<Model> load_model(const std::string& folder) {
  const auto description =
      TRY(os::read_file(folder + "/" + std::string(kDescriptionFile), kHeaderBytesMax));
  const auto weights =
      TRY(os::read_file(folder + "/" + std::string(kWeightsFile), kWeightsBytesMax));
  return decode_model(description, weights).in(folder);
}

Result<Difference> compare(const Model& a, const Model& b) {
  if (a.shape != b.shape) return invalid("comparing models: their shapes differ");
  Difference difference;
  for (const Tensor& tensor : tensors(a.shape)) {
    const auto ours = std::span(a.parameters).subspan(tensor.begin, tensor.size);
    const auto theirs = std::span(b.parameters).subspan(tensor.begin, tensor.size);
    double largest = 0;
    for (size_t i = 0; i < tensor.size; ++i) {
      const double apart = std::abs(double(ours[i]) - double(theirs[i]));
      largest = apart <= largest ? largest : apart;  // keeps a NaN, which is a difference
    }
    const double scale = std::sqrt((mean_square(ours) + mean_square(theirs)) / 2);
    const double relative = largest == 0 ? 0 : largest / scale;
    difference.absolute = largest <= difference.absolute ? difference.absolute : largest;
    if (!(relative <= difference.relative)) {
      difference.relative = relative;
      difference.tensor = tensor.name;
    }
  }
  return difference;
}

}  // namespace trainyard::train
