#include "algorithms/image_classification/settings.hpp"

#include <algorithm>
#include <functional>

#include "algorithms/image_classification/resnet.hpp"
#include "base/text.hpp"
#include "contract/hyperparameters.hpp"

namespace trainyard::algorithms {
namespace {

// for counts of samples, epochs and the like: their sums do not overflow
constexpr int64_t kCountMax = int64_t{1} << 40;
constexpr int64_t kEpochsMax = 1'000'000;
constexpr int64_t kClassesMax = 1 << 20;

using contract::in_quotes;
using contract::parse_integer;
using Hyperparameter = contract::Hyperparameter<ClassifierSettings>;
using Read = std::function<Result<void>(ClassifierSettings&, const std::string&)>;

Read integer(int64_t ClassifierSettings::*member, int64_t least, int64_t most) {
  return [=](ClassifierSettings& settings, const std::string& text) -> Result<void> {
    settings.*member = TRY(parse_integer(text, least, most));
    return ok();
  };
}

// Parses a number from 0 to 1, the range of all documented fractions.
Result<double> parse_fraction(const std::string& text) {
  const auto value = parse_double(text);
  if (!value || !(*value == *value)) return invalid(in_quotes(text) + " is not of type 'number'");
  if (*value < 0) return invalid(text + " is less than the minimum of 0");
  if (*value > 1) return invalid(text + " is greater than the maximum of 1");
  return *value;
}

Read fraction(double ClassifierSettings::*member) {
  return [=](ClassifierSettings& settings, const std::string& text) -> Result<void> {
    settings.*member = TRY(parse_fraction(text));
    return ok();
  };
}

Read fraction_of_optimizer(double parallel::OptimizerSettings::*member) {
  return [=](ClassifierSettings& settings, const std::string& text) -> Result<void> {
    settings.optimizer.*member = TRY(parse_fraction(text));
    return ok();
  };
}

// Accepts the values in `supported`, and rejects other values in `documented` with the reason.
Read choice(std::vector<std::string> documented, std::vector<std::string> supported,
            std::string reason, std::function<void(ClassifierSettings&, const std::string&)> set) {
  return [=](ClassifierSettings& settings, const std::string& text) -> Result<void> {
    if (std::ranges::find(supported, text) != supported.end()) {
      if (set) set(settings, text);
      return ok();
    }
    if (std::ranges::find(documented, text) != documented.end())
      return invalid(in_quotes(text) + " is not supported: " + reason);
    std::string list;
    for (const auto& each : documented) list += (list.empty() ? "'" : ", '") + each + "'";
    return invalid(in_quotes(text) + " is not one of [" + list + "]");
  };
}

Result<void> read_milestones(ClassifierSettings& settings, const std::string& text) {
  settings.lr_scheduler_step.clear();
  if (trim(text).empty()) return ok();
  for (const std::string_view each : split(text, ',')) {
    const int64_t epoch = TRY(parse_integer(std::string(trim(each)), 1, kEpochsMax));
    if (!settings.lr_scheduler_step.empty() && epoch <= settings.lr_scheduler_step.back())
      return invalid(in_quotes(text) + " must be epochs in ascending order");
    settings.lr_scheduler_step.push_back(epoch);
  }
  return ok();
}

Result<void> read_shape(ClassifierSettings& settings, const std::string& text) {
  settings.image_shape = TRY(parse_image_shape(text));
  return ok();
}

Result<void> read_layers(ClassifierSettings& settings, const std::string& text) {
  settings.num_layers = TRY(parse_integer(text, 1, kCountMax));
  return check_layers(settings.num_layers);
}

std::vector<Hyperparameter> model_hyperparameters() {
  using S = ClassifierSettings;
  return {
      {"image_shape", read_shape},
      {"multi_label", choice({"0", "1"}, {"0"}, "an image has one class", {})},
      {"num_classes", integer(&S::num_classes, 2, kClassesMax), true},
      {"num_layers", read_layers},
      {"precision_dtype",
       choice({"float32", "float16"}, {"float32"}, "training is in float32", {})},
      {"use_pretrained_model",
       choice({"0", "1"}, {"0"},
              "this server has no pretrained weights; a model of your own can be "
              "continued from the channel 'model'",
              {})},
      {"use_weighted_loss", choice({"0", "1"}, {"0"}, "it needs multi_label", {})},
  };
}

std::vector<Hyperparameter> data_hyperparameters() {
  using S = ClassifierSettings;
  return {
      {"augmentation_type", choice({"crop", "crop_color", "crop_color_transform"},
                                   {"crop", "crop_color", "crop_color_transform"}, "",
                                   [](S& settings, const std::string& text) {
                                     settings.augmentation =
                                         text == "crop" ? Augmentation::crop
                                         : text == "crop_color"
                                             ? Augmentation::crop_color
                                             : Augmentation::crop_color_transform;
                                   })},
      {"mini_batch_size", integer(&S::mini_batch_size, 1, 1 << 20)},
      {"num_training_samples", integer(&S::num_training_samples, 1, kCountMax), true},
      {"resize", integer(&S::resize, 1, kImageSideMax)},
  };
}

std::vector<Hyperparameter> training_hyperparameters() {
  using S = ClassifierSettings;
  using O = parallel::OptimizerSettings;
  return {
      {"beta_1", fraction_of_optimizer(&O::beta_1)},
      {"beta_2", fraction_of_optimizer(&O::beta_2)},
      {"checkpoint_frequency", integer(&S::checkpoint_frequency, 1, kEpochsMax)},
      {"early_stopping",
       choice({"True", "False", "true", "false"}, {"True", "False", "true", "false"}, "",
              [](S& settings, const std::string& text) {
                settings.early_stopping = to_lower(text) == "true";
              })},
      {"early_stopping_min_epochs", integer(&S::early_stopping_min_epochs, 1, kEpochsMax)},
      {"early_stopping_patience", integer(&S::early_stopping_epochs_max, 1, kEpochsMax)},
      {"early_stopping_tolerance", fraction(&S::early_stopping_tolerance)},
      {"epochs", integer(&S::epochs, 1, kEpochsMax)},
      {"eps", fraction_of_optimizer(&O::epsilon)},
      {"gamma", fraction_of_optimizer(&O::gamma)},
      {"kv_store",
       choice({"dist_sync", "dist_async"}, {"dist_sync"}, "gradients are always synchronised", {})},
      {"learning_rate", fraction(&S::learning_rate)},
      {"lr_scheduler_factor", fraction(&S::lr_scheduler_factor)},
      {"lr_scheduler_step", read_milestones},
      {"momentum", fraction_of_optimizer(&O::momentum)},
      {"optimizer", choice({"sgd", "adam", "rmsprop", "nag"}, {"sgd", "adam", "rmsprop", "nag"}, "",
                           [](S& settings, const std::string& text) {
                             settings.optimizer.method = *parallel::parse_method(text);
                           })},
      {"top_k", integer(&S::top_k, 2, kClassesMax)},
      {"weight_decay", fraction_of_optimizer(&O::weight_decay)},
  };
}

const std::vector<Hyperparameter>& hyperparameters() {
  static const std::vector<Hyperparameter> all = [] {
    std::vector<Hyperparameter> table;
    for (const auto& part :
         {model_hyperparameters(), data_hyperparameters(), training_hyperparameters()})
      table.insert(table.end(), part.begin(), part.end());
    return table;
  }();
  return all;
}

Result<void> check_together(const ClassifierSettings& settings) {
  TRY(check_shape(settings.num_layers, settings.image_shape));
  const int shortest = std::min(settings.image_shape.height, settings.image_shape.width);
  const int longest = std::max(settings.image_shape.height, settings.image_shape.width);
  if (settings.resize != 0 && settings.resize < longest)
    return invalid("hyperparameter resize: " + std::to_string(settings.resize) +
                   " is less than the " + std::to_string(shortest == longest ? shortest : longest) +
                   " pixels of image_shape " + to_string(settings.image_shape));
  if (settings.top_k >= settings.num_classes)
    return invalid("hyperparameter top_k: " + std::to_string(settings.top_k) +
                   " must be less than num_classes " + std::to_string(settings.num_classes));
  return ok();
}

}  // namespace

Result<ImageShape> parse_image_shape(std::string_view text) {
  const auto fields = split(text, ',');
  ImageShape shape;
  int* const members[] = {&shape.channels, &shape.height, &shape.width};
  if (fields.size() != std::size(members))
    return invalid(in_quotes(text) + " is not 'num_channels,height,width'");
  for (size_t i = 0; i < fields.size(); ++i)
    *members[i] = int(TRY(parse_integer(std::string(trim(fields[i])), 1, kImageSideMax)));
  if (shape.channels != 1 && shape.channels != 3)
    return invalid(in_quotes(text) + ": images have 1 or 3 channels");
  return shape;
}

std::string to_string(const ImageShape& shape) {
  return std::to_string(shape.channels) + "," + std::to_string(shape.height) + "," +
         std::to_string(shape.width);
}

Result<ClassifierSettings> parse_classifier_settings(
    const std::map<std::string, std::string>& given) {
  ClassifierSettings settings;
  TRY(contract::read_by_table(hyperparameters(), given, settings));
  TRY(check_together(settings));
  return settings;
}

}  // namespace trainyard::algorithms
