#include "objects/directory/upload_file.hpp"

#include <map>

#include "base/json.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kUploadIdDigits = 32;

Result<std::map<std::string, std::string>> text_members(const Json& json, const char* name) {
  std::map<std::string, std::string> texts;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return corrupt(std::string("no ") + name);
  for (const auto& [key, value] : found->items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

}  // namespace

std::string encode_upload(const UploadFile& upload) {
  return dump(Json{{"key", upload.info.key},
                   {"started_ms", to_milliseconds(upload.info.started)},
                   {"content_type", upload.options.content_type},
                   {"headers", upload.options.headers},
                   {"metadata", upload.options.metadata},
                   {"checksums", upload.options.checksums},
                   {"checksum_of_whole", upload.options.checksum_of_whole},
                   {"only_if_absent", upload.options.only_if_absent},
                   {"owner", upload.options.owner}});
}

Result<UploadFile> decode_upload(const std::string& text) {
  const Json json = TRY(parse_json(text));
  UploadFile upload;
  upload.info.key = TRY(string_at(json, "key"));
  upload.info.started = from_milliseconds(TRY(int_at(json, "started_ms")));
  upload.options.content_type = TRY(string_at(json, "content_type"));
  upload.options.headers = TRY(text_members(json, "headers"));
  upload.options.metadata = TRY(text_members(json, "metadata"));
  upload.options.checksums = TRY(text_members(json, "checksums"));
  upload.options.checksum_of_whole = TRY(bool_at(json, "checksum_of_whole"));
  upload.options.only_if_absent = TRY(bool_at(json, "only_if_absent"));
  if (json.contains("owner")) upload.options.owner = TRY(string_at(json, "owner"));
  return upload;
}

bool is_upload_id(std::string_view id) {
  return id.size() == kUploadIdDigits && id.find_first_not_of("0123456789abcdef") == id.npos;
}

}  // namespace trainyard::objects
