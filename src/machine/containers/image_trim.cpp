// Removes unused images, layers and blobs if they have too many bytes (trim_images()).
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "containers/image.hpp"
#include "containers/image_layer.hpp"
#include "containers/image_source.hpp"
#include "os/files.hpp"

namespace trainyard::containers {
namespace {

constexpr std::string_view kImagePrefix = "sha256-", kDigestPrefix = "sha256:";
constexpr size_t kImageNameBytes = 7 + 64;

int64_t changed_at(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0
             ? int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec
             : 0;
}

std::vector<std::string> names_in(const std::string& directory) {
  auto names = os::list_directory(directory);
  return names ? *std::move(names) : std::vector<std::string>();
}

class Trimming {
 public:
  Trimming(std::string images, uint64_t bytes_max)
      : images_(std::move(images)), bytes_max_(bytes_max) {}

  Result<uint64_t> run() {
    look();
    if (!pull_under_way()) {
      TRY(sweep());
      TRY(drop_orphans());
      // A compressed layer is needed only if its image changes, so it is removed before unpacked
      // images.
      TRY(drop_blobs());
    }
    for (const auto& [used_at, name] : oldest_first()) {
      if (bytes() <= bytes_max_ || pull_under_way()) break;
      TRY(drop_image(name));
    }
    return bytes();
  }

 private:
  std::string path(const std::string& name) const { return images_ + "/" + name; }

  void look() {
    for (const auto& name : names_in(images_)) {
      if (name.size() != kImageNameBytes || !name.starts_with(kImagePrefix)) continue;
      auto& layers = layers_of_[name];
      const auto text = os::read_file(path(name) + "/image.json", 4 << 20);
      const auto json = text ? parse_json(*text) : Result<Json>(text.error());
      if (!json || !json->contains("layers") || !json->at("layers").is_array()) continue;
      for (const auto& each : json->at("layers"))
        if (each.is_string() && each.get<std::string>().starts_with(kDigestPrefix))
          layers.insert(each.get<std::string>().substr(kDigestPrefix.size()));
    }
    for (const auto& name : names_in(images_ + "/layers"))
      if (name.size() == 64) layer_bytes_[name] = layer_bytes(layer(name));
    for (const auto& name : names_in(images_ + "/blobs/sha256"))
      blob_bytes_[name] = file_bytes(blob(name));
  }

  std::string layer(const std::string& name) const { return images_ + "/layers/" + name; }
  std::string blob(const std::string& name) const { return images_ + "/blobs/sha256/" + name; }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const auto* each : {&layer_bytes_, &blob_bytes_})
      for (const auto& [name, size] : *each) sum += size;
    return sum;
  }

  bool pull_under_way() const {
    for (const auto& directory : {images_, images_ + "/layers"})
      for (const auto& name : names_in(directory))
        if (name.ends_with(".lock") && os::FileLock::held(directory + "/" + name)) return true;
    return false;
  }

  bool used(const std::string& name) const {
    const std::string marks = path(name) + ".used";
    for (const auto& mark : names_in(marks))
      if (os::FileLock::held(marks + "/" + mark)) return true;
    return false;
  }

  std::vector<std::pair<int64_t, std::string>> oldest_first() const {
    std::vector<std::pair<int64_t, std::string>> images;
    for (const auto& [name, layers] : layers_of_)
      images.emplace_back(changed_at(path(name) + "/image.json"), name);
    std::sort(images.begin(), images.end());
    return images;
  }

  // Removes incomplete files that a crash left.
  Result<void> sweep() const {
    for (const auto& directory : {images_, images_ + "/layers"})
      for (const auto& name : names_in(directory))
        if (name.ends_with(".unpacking") || name.ends_with(".removing"))
          TRY(os::remove_all(directory + "/" + name));
    return ok();
  }

  Result<void> drop_orphans() {
    std::set<std::string> needed;
    for (const auto& [name, layers] : layers_of_) needed.insert(layers.begin(), layers.end());
    for (auto at = layer_bytes_.begin(); at != layer_bytes_.end();) {
      if (needed.contains(at->first)) {
        ++at;
        continue;
      }
      TRY(os::remove_all(layer(at->first)));
      TRY(os::remove_all(layer(at->first) + ".lock"));
      at = layer_bytes_.erase(at);
    }
    return ok();
  }

  Result<void> drop_blobs() {
    std::vector<std::pair<int64_t, std::string>> blobs;
    for (const auto& [name, size] : blob_bytes_) blobs.emplace_back(changed_at(blob(name)), name);
    std::sort(blobs.begin(), blobs.end());
    for (const auto& [at, name] : blobs) {
      if (bytes() <= bytes_max_) break;
      TRY(os::remove_all(blob(name)));
      blob_bytes_.erase(name);
    }
    return ok();
  }

  Result<void> drop_image(const std::string& name) {
    if (!TRY(remove_image(name))) return ok();
    layers_of_.erase(name);
    return pull_under_way() ? ok() : drop_orphans();
  }

  // Removes an image. Returns false if it is in use. A user marks the image before it checks that
  // it exists; here the image is renamed before the marks are read.
  Result<bool> remove_image(const std::string& name) const {
    const auto lock = os::FileLock::take(path(name) + ".lock");
    if (!lock || used(name)) return false;
    const std::string removing = path(name) + ".removing";
    if (::rename(path(name).c_str(), removing.c_str()) != 0)
      return from_errno("renaming " + path(name));
    if (used(name)) {
      if (::rename(removing.c_str(), path(name).c_str()) != 0)
        return from_errno("renaming " + removing);
      return false;
    }
    TRY(os::remove_all(removing));
    TRY(os::remove_all(path(name) + ".used"));
    return true;
  }

  const std::string images_;
  const uint64_t bytes_max_;
  std::map<std::string, std::set<std::string>> layers_of_;  // image -> hex digests
  std::map<std::string, uint64_t> layer_bytes_, blob_bytes_;
};

}  // namespace

Result<uint64_t> trim_images(const std::string& images_directory, uint64_t bytes_max) {
  uint64_t bytes = 0;
  if (os::exists(images_directory)) bytes = TRY(Trimming(images_directory, bytes_max).run());
  const std::string directory = private_images(images_directory);
  for (const auto& name : names_in(directory))
    bytes += TRY(Trimming(directory + "/" + name, bytes_max > bytes ? bytes_max - bytes : 0).run());
  return bytes;
}

}  // namespace trainyard::containers
