// Saves and loads classifiers as image-classification.safetensors. The tensors have torchvision's
// names, and the metadata describes the network:
//
//   format trainyard-image-classification   num_layers, image_shape, num_classes
//
// Threads: confined to one. Errors: those of files; corrupt or invalid, naming the part that does
// not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/image_classification/resnet.hpp"
#include "base/result.hpp"

namespace trainyard::algorithms {

inline constexpr std::string_view kClassifierFile = "image-classification.safetensors";
inline constexpr size_t kClassifierBytesMax = size_t{4} << 30;
inline constexpr int64_t kStoredClassesMax = 1 << 20;

struct Architecture {
  int64_t num_layers = 0;
  ImageShape image_shape;
  int64_t num_classes = 0;

  bool operator==(const Architecture&) const = default;
};

// Returns "50 layers, images of 3,224,224, 10 classes", for errors.
std::string describe(const Architecture& architecture);

Result<void> save_classifier(const Architecture& architecture, const ResNet& network,
                             const std::string& path);

struct Classifier {
  Architecture architecture;
  std::unique_ptr<ResNet> network;
};
Result<Classifier> load_classifier(const std::string& path);
// Returns the probability of each class. The image is resized to the network's shape.
Result<std::vector<float>> score_image(const Classifier& classifier, std::string_view bytes);
// Reads the weights into `network`. Errors: also invalid, if the file has another architecture.
Result<void> load_weights(const std::string& path, const Architecture& architecture,
                          ResNet& network);

}  // namespace trainyard::algorithms
