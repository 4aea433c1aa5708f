#include "cli/tensorboard/own_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "cli/layout.hpp"
#include "os/beneath.hpp"

namespace trainyard::cli::tensorboard {
namespace {

// Limits of file systems for one name and for one path.
constexpr size_t kNameBytesMax = 255;
constexpr size_t kPathBytesMax = 3000;
constexpr size_t kBufferBytes = 256 << 10;

// As TensorBoard recognises them.
bool is_event_file(const std::string& path) {
  return path.find("tfevents", path.rfind('/') + 1) != std::string::npos;
}

// Opens the file at its byte `from`, and cuts off what follows.
Result<os::File> open_at(const os::File& directory, const std::string& path, uint64_t from) {
  if (const size_t slash = path.rfind('/'); slash != std::string::npos)
    TRY(os::make_directories_beneath(directory, path.substr(0, slash)));
  auto file = TRY(os::create_file_beneath(directory, path, os::IfThere::keep_content));
  const auto offset = static_cast<off_t>(from);
  if (::ftruncate(file.descriptor(), offset) != 0 ||
      ::lseek(file.descriptor(), offset, SEEK_SET) != offset)
    return from_errno(path);
  return file;
}

}  // namespace

Result<std::string> path_of_own_file(const std::string& rest) {
  if (rest.size() > kPathBytesMax)
    return invalid("its path is longer than " + std::to_string(kPathBytesMax) + " bytes");
  for (const auto part : split(rest, '/')) {
    if (part.empty() || part == "." || part == "..")
      return invalid("a part of its name is empty, '.' or '..'");
    if (part.size() > kNameBytesMax) return invalid("a part of its name is too long");
    if (part.find('\0') != std::string_view::npos) return invalid("its name has a NUL byte");
  }
  return rest;
}

Result<OwnFiles> OwnFiles::open(const objects::Location& from, const std::string& directory) {
  TRY(os::make_directories(directory));
  os::File opened(::open(directory.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened) return from_errno("opening " + directory);
  objects::Location prefix = from;
  if (!prefix.key.empty() && !prefix.key.ends_with('/')) prefix.key += '/';
  return OwnFiles(std::move(prefix), std::move(opened));
}

Result<std::vector<std::string>> OwnFiles::fetch(objects::Objects& store,
                                                 const std::function<bool()>& may_continue) {
  objects::ListQuery query;
  query.prefix = from_.key;
  do {
    const auto page = TRY(store.list(from_.bucket, query));
    for (const auto& object : page.objects) {
      if (object.key.ends_with('/')) continue;  // a folder of a file browser
      const auto path = path_of_own_file(object.key.substr(from_.key.size()));
      if (!path) {
        leave_out(object.key, path.error().message);
      } else if (!has_space_for(object, *path)) {
        leave_out(object.key, "the job has more than " + std::to_string(kOwnFilesMax) +
                                  " files or " + human_bytes(kOwnBytesMax));
      } else {
        TRY(bring(store, object, *path, may_continue));
      }
    }
    query.start_after = page.next;
  } while (!query.start_after.empty());
  return std::exchange(reports_, {});
}

Result<void> OwnFiles::bring(objects::Objects& store, const objects::ObjectInfo& object,
                             const std::string& path, const std::function<bool()>& may_continue) {
  const auto known = copies_.find(path);
  const Copy before = known == copies_.end() ? Copy() : known->second;
  if (before.etag == object.etag && before.bytes == object.bytes && known != copies_.end())
    return {};
  const bool appends = is_event_file(path) && object.bytes > before.bytes;
  const uint64_t from = appends ? before.bytes : 0;
  const auto file = open_at(directory_, path, from);
  if (!file && file.error().kind == Kind::exhausted) return file.error();
  if (!file) {  // a file where a directory is needed, or what the user has put there
    leave_out(object.key, file.error().message);
    return {};
  }
  Copy& copy = copies_[path];
  bytes_ = bytes_ - copy.bytes + from;
  copy = {"", from};
  if (object.bytes > 0) {
    const auto reader = store.get(from_.bucket, object.key, objects::Range{from, object.bytes - 1});
    if (!reader && reader.error().kind == Kind::not_found) return {};  // removed since the listing
    if (!reader) return reader.error();
    TRY(append(**reader, *file, path, copy, may_continue));
  }
  copy.etag = object.etag;
  return {};
}

Result<void> OwnFiles::append(objects::Reader& from, const os::File& to, const std::string& path,
                              Copy& copy, const std::function<bool()>& may_continue) {
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    if (!may_continue()) return cancelled("interrupted");
    const size_t got = TRY(from.read(buffer));
    if (got == 0) return {};
    TRY(os::write_whole(to, {buffer.data(), got}, path));
    copy.bytes += got;
    bytes_ += got;
  }
}

bool OwnFiles::has_space_for(const objects::ObjectInfo& object, const std::string& path) const {
  const auto copy = copies_.find(path);
  if (copy == copies_.end() && copies_.size() >= kOwnFilesMax) return false;
  const uint64_t others = bytes_ - (copy == copies_.end() ? 0 : copy->second.bytes);
  return object.bytes <= kOwnBytesMax && others <= kOwnBytesMax - object.bytes;
}

void OwnFiles::leave_out(const std::string& key, const std::string& why) {
  if (left_out_.size() >= kLeftOutNamesMax || !left_out_.insert(key).second) return;
  reports_.push_back(plain_text("s3://" + from_.bucket + "/" + key + " is left out: " + why));
}

}  // namespace trainyard::cli::tensorboard
