#include "trainyard/images.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::apps {
namespace {

constexpr const char* kTrainerInside = "/opt/trainyard/bin/trainyard-trainer";
constexpr std::string_view kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* kFrameworkNote =
    "The image is AWS's and is not pulled: the job runs on this machine's own system. [images] in the "
    "server's config "
    "may name another one.";

// AWS's images for training with frameworks. What they hold is on the machine, or it is not: entry says which Python
// module is missing.
constexpr const char* kFrameworks[] = {
    "pytorch-training",       "pytorch-training-*", "tensorflow-training",     "mxnet-training",
    "huggingface-*",          "autogluon-training", "sagemaker-pytorch*",      "sagemaker-tensorflow*",
    "sagemaker-mxnet*",       "sagemaker-chainer*", "sagemaker-xgboost",       "sagemaker-scikit-learn",
    "sagemaker-base-python*", "sagemaker-rl-*",     "sagemaker-distribution*",
};

// Where the interpreter of an environment comes from, when that is not in a runtime anyway: "home" of pyvenv.cfg is its
// bin.
std::string base_system(const std::filesystem::path& environment) {
  auto config = os::read_file((environment / "pyvenv.cfg").string(), 1 << 16);
  if (!config) return "";
  for (const auto line : split(*config, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)) != "home") continue;
    const std::filesystem::path base = std::filesystem::path(trim(line.substr(equals + 1))).parent_path();
    std::error_code error;
    const auto real = std::filesystem::canonical(base, error);
    if (error || real == real.root_path() || *std::next(real.begin()) == "usr") return "";
    return base.string();
  }
  return "";
}

}  // namespace

std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory) {
  configured.try_emplace("trainyard/machine");
  const std::string program = program_directory + "/trainyard-trainer";
  if (os::exists(program)) {
    domain::Image trainer;
    trainer.mounts[kTrainerInside] = program;
    trainer.entrypoint = {kTrainerInside};
    configured.try_emplace("trainyard/trainer", trainer);
  }
  for (const char* framework : kFrameworks) {
    domain::Image image;
    image.note = kFrameworkNote;
    image.built_in = true;
    configured.try_emplace(framework, image);
  }
  return configured;
}

std::string images_directory(const std::string& data_directory) { return data_directory + "/images"; }

Result<void> add_python(domain::Image& runtime, const std::string& environment) {
  const std::filesystem::path path(environment);
  if (!path.is_absolute() || !os::exists(environment + "/bin/python3"))
    return invalid("'" + environment +
                   "' is not a Python environment: it has no bin/python3, or its path is not absolute");
  runtime.mounts[environment] = environment;
  if (const std::string base = base_system(path); !base.empty()) runtime.mounts[base] = base;
  const auto [at, made] = runtime.environment.try_emplace("PATH", kUsualPath);
  at->second = environment + "/bin:" + at->second;
  runtime.environment.try_emplace("VIRTUAL_ENV", environment);
  return {};
}

}  // namespace trainyard::apps
