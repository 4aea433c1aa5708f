#include "algorithms/image_classification/model_file.hpp"

#include "base/complete_record.hpp"
#include "checkpoint/metadata.hpp"

namespace trainyard::algorithms {
namespace {

constexpr const char* kFormat = "trainyard-image-classification";
constexpr uint64_t kAnySeed = 1;  // the parameters are then replaced by the file's

constexpr auto kArchitecture =
    complete(json_record<Architecture>("metadata", [](auto& side, auto& architecture) {
      side("num_layers", architecture.num_layers, checkpoint::DecimalText{});
      side("image_shape", architecture.image_shape, parse_image_shape);
      side("num_classes", architecture.num_classes, checkpoint::DecimalText{});
    }));

Result<Architecture> architecture_of(const checkpoint::Contents& contents) {
  const Architecture found =
      TRY(checkpoint::read_metadata(contents.metadata, kFormat, kArchitecture));
  TRY(check_shape(found.num_layers, found.image_shape));
  if (found.num_classes < 2 || found.num_classes > kStoredClassesMax)
    return corrupt("invalid num_classes " + std::to_string(found.num_classes));
  return found;
}

}  // namespace

std::string describe(const Architecture& architecture) {
  return std::to_string(architecture.num_layers) + " layers, images of " +
         to_string(architecture.image_shape) + ", " + std::to_string(architecture.num_classes) +
         " classes";
}

Result<void> save_classifier(const Architecture& architecture, const ResNet& network,
                             const std::string& path) {
  const auto tensors = network.stored();
  checkpoint::Contents contents;
  parallel::add_tensors(tensors, contents);
  contents.metadata = checkpoint::write_metadata(kFormat, kArchitecture, architecture);
  return checkpoint::save(contents, path);
}

Result<Classifier> load_classifier(const std::string& path) {
  const checkpoint::LoadedFile file = TRY(checkpoint::load(path, kClassifierBytesMax));
  Classifier loaded;
  loaded.architecture = TRY(architecture_of(file.contents).in(path));
  const auto& [layers, shape, classes] = loaded.architecture;
  loaded.network = std::make_unique<ResNet>(layers, shape, classes, kAnySeed);
  TRY(parallel::assign_tensors(file.contents, loaded.network->stored()).in(path));
  return loaded;
}

Result<void> load_weights(const std::string& path, const Architecture& architecture,
                          ResNet& network) {
  const checkpoint::LoadedFile file = TRY(checkpoint::load(path, kClassifierBytesMax));
  const Architecture found = TRY(architecture_of(file.contents).in(path));
  if (found != architecture)
    return invalid(path + " has " + describe(found) + ", but the hyperparameters request " +
                   describe(architecture));
  return parallel::assign_tensors(file.contents, network.stored()).in(path);
}

}  // namespace trainyard::algorithms
