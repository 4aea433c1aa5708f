#include "objects/directory/tree_reads.hpp"

#include <sys/stat.h>

#include "base/log.hpp"
#include "base/text.hpp"
#include "objects/directory/key_walk.hpp"
#include "objects/names.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

std::string upload_path(const BucketTree& tree, const std::string& id) {
  return tree.uploads_path() + "/" + id;
}

std::string parts_of(const BucketTree& tree, const std::string& id) {
  return tree.parts_path() + "/" + id;
}

Result<Opened> open_object(const BucketTree& tree, const std::string& key) {
  auto opened = open_recorded(tree.path_of_key(key));
  if (!opened && opened.error().kind == Kind::not_found) return no_key(tree.info().name, key);
  return opened;
}

ObjectInfo describe_broken(const BucketTree& tree, const std::string& key, const Error& why) {
  log(Level::error, "objects", "cannot read an object",
      {{"bucket", tree.info().name}, {"key", key}, {"why", why.message}});
  struct stat status {};
  ObjectInfo info{.key = key};
  if (stat(tree.path_of_key(key).c_str(), &status) == 0) {
    info.bytes = uint64_t(status.st_size);
    info.modified = from_milliseconds(int64_t(status.st_mtime) * 1000);
  }
  return info;
}

Result<UploadFile> read_upload(const BucketTree& tree, const std::string& id) {
  // The ID comes from outside and becomes a path.
  if (!is_upload_id(id)) return no_upload(id);
  const auto text = os::read_file(upload_path(tree, id) + "/upload", kUploadFileBytesMax);
  if (!text && text.error().kind == Kind::not_found) return no_upload(id);
  if (!text) return text.error();
  auto upload = decode_upload(*text);
  if (!upload) return corrupt(upload_path(tree, id) + ": " + upload.error().message);
  upload->info.upload_id = id;
  return upload;
}
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& key,
                               const std::string& id) {
  auto upload = TRY(read_upload(tree, id));
  if (upload.info.key != key) return no_upload(id);
  return upload;
}

Result<std::map<uint32_t, PartInfo>> read_parts(const std::string& directory) {
  std::map<uint32_t, PartInfo> parts;
  const auto names = TRY(os::list_directory(directory));
  for (const auto& name : names) {
    const auto number = parse_int(name);
    if (!number || *number < 1 || *number > kPartsMax) continue;
    auto opened = open_recorded(directory + "/" + name);
    // The upload ended meanwhile.
    if (!opened && opened.error().kind == Kind::not_found) continue;
    if (!opened && opened.error().kind == Kind::corrupt) {
      log(Level::error, "objects", "cannot read a part; it counts as not uploaded",
          {{"why", opened.error().message}});
      continue;
    }
    const Opened found = TRY(std::move(opened));
    const ObjectInfo& info = found.record.info;
    parts[uint32_t(*number)] = {uint32_t(*number), info.etag, info.bytes, info.modified,
                                info.checksums};
  }
  return parts;
}

bool belongs_to_object(const BucketTree& tree, const std::string& key, const std::string& id) {
  const auto object = open_object(tree, key);
  return object && object->record.parts > 0 && object->record.upload_id == id;
}

Result<void> count_stored(BucketTree& tree, StorageUse& use) {
  const std::string& bucket = tree.info().name;
  KeyWalk walk(tree.keys_path(), tree.names(),
               [](const std::string&) { return std::optional<ObjectInfo>(); });
  const auto never = [](std::string_view) { return false; };
  for (std::string bound;;) {
    const auto key = TRY(walk.at_or_after(bound, never));
    if (!key) break;
    auto opened = open_object(tree, *key);
    const ObjectInfo info =
        opened ? std::move(opened->record.info) : describe_broken(tree, *key, opened.error());
    use.add(bucket, info.owner, {info.bytes, 1});
    bound = *key + '\0';
  }
  const auto ids = TRY(os::list_directory(tree.uploads_path()));
  for (const auto& id : ids) {
    const auto upload = read_upload(tree, id);
    if (!upload || belongs_to_object(tree, upload->info.key, id)) continue;
    const auto parts = TRY(read_parts(upload_path(tree, id)));
    for (const auto& [number, part] : parts)
      use.add(bucket, upload->options.owner, {part.bytes, 0});
  }
  return ok();
}

}  // namespace trainyard::objects
