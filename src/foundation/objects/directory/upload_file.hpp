// What the file `upload` of a multipart upload says: its key, when it began, and how the object shall be.
// Grammar: docs/formats/objects.md.
//
// Threads: pure. Errors: corrupt.
#pragma once

#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct UploadFile {
  UploadInfo info;  // but for upload_id
  PutOptions options;
};

std::string encode_upload(const UploadFile& upload);
Result<UploadFile> decode_upload(const std::string& text);

// Upload IDs come from outside, and from records, and become paths.
bool is_upload_id(std::string_view id);

}  // namespace trainyard::objects
