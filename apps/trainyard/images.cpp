#include "trainyard/images.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "contract/contract.hpp"
#include "domain/deprecated_images.hpp"
#include "os/files.hpp"

namespace trainyard::apps {
namespace {

constexpr const char* kTrainerInside = "/opt/trainyard/bin/trainyard-trainer";
constexpr const char* kAlgorithmsInside = "/opt/trainyard/bin/trainyard-algorithms";
constexpr const char* kAlgorithmNote =
    "The image is AWS's and is not pulled: the job runs the same algorithm of this server.";
// SageMaker's algorithms that trainyard-algorithms implements, by the names of AWS's images.
constexpr const char* kAlgorithms[] = {"image-classification"};
// XGBoost's image runs the user's script if a job names one, so it has no entrypoint: as in AWS's
// image, the program is the command `train` on its PATH.
constexpr const char* kXgboostFolder = "/opt/trainyard/xgboost";
// The names of the image for current and for the first versions of the algorithm.
constexpr const char* kXgboost[] = {"sagemaker-xgboost", "xgboost"};
constexpr const char* kForest = "randomcutforest";  // implemented by trainyard-trainer
constexpr const char* kFrameworkNote =
    "The image is AWS's and is not pulled: the job runs on this machine's own system. [images] in "
    "the server's config may name another one.";

// AWS's framework images for training. Entry reports a Python module that the machine lacks.
constexpr const char* kFrameworks[] = {
    "pytorch-training",       "pytorch-training-*",    "tensorflow-training",
    "mxnet-training",         "huggingface-*",         "autogluon-training",
    "sagemaker-pytorch*",     "sagemaker-tensorflow*", "sagemaker-mxnet*",
    "sagemaker-chainer*",     "sagemaker-xgboost",     "sagemaker-scikit-learn",
    "sagemaker-base-python*", "sagemaker-rl-*",        "sagemaker-distribution*",
};

}  // namespace

std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory) {
  configured.try_emplace(std::string(domain::kHostImage));
  const std::string program = program_directory + "/trainyard-trainer";
  if (os::exists(program)) {
    domain::Image trainer;
    trainer.mounts[kTrainerInside] = program;
    trainer.entrypoint = {kTrainerInside};
    configured.try_emplace("trainyard/trainer", trainer);
    trainer.entrypoint.emplace_back(kForest);
    trainer.note = kAlgorithmNote;
    trainer.built_in = true;
    configured.try_emplace(kForest, trainer);
  }
  const std::string algorithms = program_directory + "/trainyard-algorithms";
  for (const char* name : kAlgorithms) {
    if (!os::exists(algorithms)) break;
    domain::Image image;
    image.mounts[kAlgorithmsInside] = algorithms;
    image.entrypoint = {kAlgorithmsInside, name};
    // Otherwise libtorch's threads spin while they wait for each other, even for threads that are
    // not scheduled.
    image.environment["OMP_WAIT_POLICY"] = "PASSIVE";
    image.note = kAlgorithmNote;
    image.built_in = true;
    configured.try_emplace(name, image);
  }
  const std::string xgboost = program_directory + "/trainyard-xgboost";
  for (const char* name : kXgboost) {
    if (!os::exists(xgboost)) break;
    domain::Image image;
    image.mounts[std::string(kXgboostFolder) + "/train"] = xgboost;
    image.environment["PATH"] =
        std::string(kXgboostFolder) + ":" + std::string(contract::kUsualPath);
    image.environment["OMP_WAIT_POLICY"] = "PASSIVE";  // as for libtorch
    image.note = kAlgorithmNote;
    image.built_in = true;
    configured.try_emplace(name, image);
  }
  for (const char* framework : kFrameworks) {
    domain::Image image;
    image.note = kFrameworkNote;
    image.built_in = true;
    configured.try_emplace(framework, image);
  }
  return configured;
}

std::string images_directory(const std::string& data_directory) {
  return data_directory + "/images";
}

}  // namespace trainyard::apps
