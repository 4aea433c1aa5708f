#include "trainyard/client_files.hpp"

#include "contract/clients.hpp"
#include "os/files.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard/environment.hpp"

namespace trainyard::apps {
namespace {

// Writes the model of Trainyard's own operations, with which clients can call them: `aws trainyard
// interrupt-training-job`.
Result<void> write_own_model(const DataDirectory& data) {
  const std::string path = data.file("clients/" + std::string(api::shapes::trainyard::kModelPath));
  TRY(os::make_directories(path.substr(0, path.rfind('/'))));
  return os::write_file_durably(path, std::string(api::shapes::trainyard::kModel), 0644);
}

}  // namespace

Result<void> write_client_files(const DataDirectory& data, const std::string& reachable) {
  TRY(os::make_directories(data.file("clients")));
  TRY(os::write_file_durably(data.file("clients/endpoints.json"),
                             contract::endpoints_json("https://" + reachable), 0644));
  TRY(write_own_model(data));
  TRY(os::write_file_durably(data.file("clients/sagemaker.yaml"), sagemaker_yaml(), 0644));
  TRY(os::make_directories(data.file("clients/python")));
  return os::write_file_durably(data.file(std::string("clients/python/") + kBotocorePlugin + ".py"),
                                botocore_plugin(), 0644);
}

}  // namespace trainyard::apps
