#include "images/collection.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/fnv.hpp"
#include "images/decode.hpp"
#include "images/image_record.hpp"
#include "os/files.hpp"

namespace trainyard::images {
namespace {

namespace fs = std::filesystem;

// Returns the regular files below the folder whose names have this ending, relative to it, in
// order.
Result<std::vector<std::string>> files_below(const std::string& folder, std::string_view ending) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::recursive_directory_iterator each(folder, fault), end; !fault && each != end;
       each.increment(fault)) {
    if (size_t(each.depth()) > kFoldersDepthMax)
      return exhausted(folder + " has more than " + std::to_string(kFoldersDepthMax) +
                       " levels of folders");
    const std::string name = each->path().lexically_relative(folder).string();
    if (!name.ends_with(ending) || !each->is_regular_file(fault)) continue;
    if (names.size() == kFilesMax)
      return exhausted(folder + " has more than " + std::to_string(kFilesMax) + " files");
    names.push_back(name);
  }
  if (fault) return from_errno("reading " + folder, fault.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<Collection> Collection::open_records(const std::string& folder) {
  Collection collection;
  for (const std::string& name : TRY(files_below(folder, ".rec")))
    TRY(collection.add_records(folder, name));
  return collection;
}

Result<void> Collection::add_records(const std::string& folder, const std::string& name) {
  files_.push_back(TRY(RecordFile::open(folder + "/" + name)));
  const RecordFile& file = files_.back();
  for (size_t record = 0; record < file.size(); ++record) {
    const std::string place = file.path() + ", record " + std::to_string(record);
    std::string start = TRY(file.read_start(record, kImageRecordHeadBytes).in(place));
    if (start.size() == kImageRecordHeadBytes && start.substr(0, 4) != std::string(4, '\0'))
      start = TRY(file.read(record).in(place));  // the labels follow the header
    auto decoded = TRY(decode_image_record(start).in(place));
    add_to_digest(name, record, decoded.labels);
    labels_.push_back(std::move(decoded.labels));
    positions_.push_back({uint32_t(files_.size() - 1), uint32_t(record)});
  }
  return ok();
}

Result<Collection> Collection::open_lists(const std::string& lists_folder,
                                          const std::string& images_folder, MissingFiles missing) {
  Collection collection;
  collection.folder_ = images_folder;
  for (const std::string& name : TRY(files_below(lists_folder, ".lst"))) {
    const std::string path = lists_folder + "/" + name;
    const std::string text = TRY(os::read_file(path, kListBytesMax));
    TRY(collection.add_list(text, images_folder, missing).in(path));
  }
  return collection;
}

Result<void> Collection::add_list(const std::string& text, const std::string& images_folder,
                                  MissingFiles missing) {
  for (ListedImage& each : TRY(parse_list(text))) {
    std::error_code fault;
    const uint64_t bytes = fs::file_size(images_folder + "/" + each.path, fault);
    if (fault && missing == MissingFiles::are_elsewhere) continue;
    if (fault)
      return not_found("image " + each.path + " not found in " + images_folder +
                       ": the list and the channel's files differ");
    add_to_digest(each.path, bytes, each.labels);
    paths_.push_back(std::move(each.path));
    labels_.push_back(std::move(each.labels));
  }
  return ok();
}

void Collection::add_to_digest(const std::string& name, uint64_t bytes,
                               const std::vector<float>& labels) {
  digest_ = fnv1a(name, digest_ == 0 ? kFnvBasis : digest_);
  digest_ = fnv1a_step(digest_, bytes);
  digest_ = fnv1a(std::as_bytes(std::span(labels)), digest_);
}

Result<std::string> Collection::read(size_t image) const {
  CHECK(image < size(), "the image exists");
  if (positions_.empty()) return os::read_file(folder_ + "/" + paths_[image], kImageBytesMax);
  const Position& position = positions_[image];
  std::string record = TRY(files_[position.file].read(position.record));
  const auto decoded = TRY(decode_image_record(record));
  record.erase(0, record.size() - decoded.image.size());
  return record;
}

std::string Collection::name(size_t image) const {
  CHECK(image < size(), "the image exists");
  if (positions_.empty()) return paths_[image];
  const Position& position = positions_[image];
  return fs::path(files_[position.file].path()).filename().string() + ", record " +
         std::to_string(position.record);
}

}  // namespace trainyard::images
