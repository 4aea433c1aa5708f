// Reads the tree of a bucket: opens objects, uploads and parts, and counts their total size.
//
// Threads: callable from anywhere; files may change meanwhile. Errors: not_found, corrupt, and
// those of files.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "objects/directory/bucket_tree.hpp"
#include "objects/directory/readers.hpp"
#include "objects/directory/upload_file.hpp"
#include "objects/objects.hpp"
#include "objects/storage_use.hpp"

namespace trainyard::objects {

inline constexpr size_t kUploadFileBytesMax = 256 << 10;  // like kRecordBytesMax

// Returns the directory of the parts of a running upload.
std::string upload_path(const BucketTree& tree, const std::string& id);
// Returns the directory of the parts of an object.
std::string parts_of(const BucketTree& tree, const std::string& id);

Result<Opened> open_object(const BucketTree& tree, const std::string& key);
// Returns the entry of a listing for an unreadable object, and logs why. The entry makes the object
// visible; a get of it reports the error.
ObjectInfo describe_broken(const BucketTree& tree, const std::string& key, const Error& why);

// Opens an upload by its ID, which comes from outside and is checked.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& id);
// Checks also that the upload is for this key.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& key,
                               const std::string& id);
Result<std::map<uint32_t, PartInfo>> read_parts(const std::string& directory);
// Returns true if the object with this key consists of the parts of this upload.
bool belongs_to_object(const BucketTree& tree, const std::string& key, const std::string& id);

// Adds all objects and the parts of running uploads to `use`. An unreadable file is counted with
// its length and without an owner.
Result<void> count_stored(BucketTree& tree, StorageUse& use);

}  // namespace trainyard::objects
