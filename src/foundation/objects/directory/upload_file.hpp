// Encodes and decodes the file `upload` of a multipart upload: its key, the time of its start, and
// the options of its object. Grammar: docs/formats/objects.md.
//
// Threads: pure. Errors: corrupt.
#pragma once

#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct UploadFile {
  UploadInfo info;  // without upload_id
  PutOptions options;
};

std::string encode_upload(const UploadFile& upload);
Result<UploadFile> decode_upload(const std::string& text);

// Checks the form of an upload ID. IDs come from outside and from records, and become paths.
bool is_upload_id(std::string_view id);

}  // namespace trainyard::objects
