// Reads a bucket's tree: objects, uploads and parts from their files, and the sum of all.
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

inline constexpr size_t kUploadFileBytesMax = 256 << 10;  // as a record

// The directory of an upload's parts while it runs, and when they belong to an object.
std::string upload_path(const BucketTree& tree, const std::string& id);
std::string parts_of(const BucketTree& tree, const std::string& id);

Result<Opened> open_object(const BucketTree& tree, const std::string& key);
// The entry of a listing for an unreadable object: so that it is visible, and a get reports the
// error.
ObjectInfo describe_broken(const BucketTree& tree, const std::string& key, const Error& why);

// Checks the id, which comes from outside.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& id);
// Checks also that the upload is for the key.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& key,
                               const std::string& id);
Result<std::map<uint32_t, PartInfo>> read_parts(const std::string& directory);
// True if the object of that key is the list of this upload's parts.
bool belongs_to_object(const BucketTree& tree, const std::string& key, const std::string& id);

// Adds all objects, and the parts of running uploads. An unreadable file counts with its length,
// without an owner.
Result<void> count_stored(BucketTree& tree, StorageUse& use);

}  // namespace trainyard::objects
