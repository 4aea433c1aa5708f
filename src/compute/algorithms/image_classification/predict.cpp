#include "algorithms/image_classification/predict.hpp"

#include "algorithms/image_classification/batches.hpp"
#include "algorithms/image_classification/model_file.hpp"
#include "base/json.hpp"
#include "os/files.hpp"

namespace trainyard::algorithms {

Result<std::vector<float>> score_image(const Classifier& classifier, std::string_view bytes) {
  const at::NoGradGuard no_gradients;
  const ImageShape& shape = classifier.architecture.image_shape;
  const images::Image image = TRY(prepare_for_scoring(bytes, shape));
  const at::Tensor input = at::empty({1, shape.channels, shape.height, shape.width}, at::kFloat);
  write_planes(image, static_cast<float*>(input.data_ptr()));
  const at::Tensor scores = classifier.network->forward(input, false).softmax(1).contiguous();
  const auto* values = static_cast<const float*>(scores.data_ptr());
  return std::vector<float>(values, values + scores.numel());
}

Result<void> print_predictions(const std::string& model_folder,
                               const std::vector<std::string>& image_paths,
                               const std::function<void(std::string_view line)>& print) {
  const auto classifier = TRY(load_classifier(model_folder + "/" + std::string(kClassifierFile)));
  for (const std::string& path : image_paths) {
    const std::string bytes = TRY(os::read_file(path, images::kImageBytesMax));
    const auto prediction = TRY(score_image(classifier, bytes).in(path));
    print(dump(Json{{"prediction", prediction}}));
  }
  return ok();
}

}  // namespace trainyard::algorithms
