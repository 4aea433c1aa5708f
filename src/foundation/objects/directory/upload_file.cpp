#include "objects/directory/upload_file.hpp"

#include "base/json_record.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kUploadIdDigits = 32;

constexpr auto kUpload = json_record<UploadFile>(
    "upload",
    [](auto& side, auto& upload) {
      side("key", upload.info.key);
      side("started_ms", upload.info.started);
      side("content_type", upload.options.content_type);
      side("headers", upload.options.headers);
      side("metadata", upload.options.metadata);
      side("checksums", upload.options.checksums);
      side("checksum_of_whole", upload.options.checksum_of_whole);
      side("only_if_absent", upload.options.only_if_absent);
      side("owner", upload.options.owner);
      side.if_set("tags", upload.options.tags);
    },
    [](const UploadFile& upload) -> Result<void> {
      if (upload.info.key.empty()) return corrupt("the upload has no key");
      return {};
    });

}  // namespace

std::string encode_upload(const UploadFile& upload) { return dump(kUpload.write(upload)); }

Result<UploadFile> decode_upload(const std::string& text) {
  return kUpload.read(TRY(parse_json(text)));
}

bool is_upload_id(std::string_view id) {
  return id.size() == kUploadIdDigits && id.find_first_not_of("0123456789abcdef") == id.npos;
}

}  // namespace trainyard::objects
