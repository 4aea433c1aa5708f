// Reads a bucket's tree: objects, uploads and parts by their files, and how much all of them are.
//
// Threads: callable from anywhere; what is read may change meanwhile. Errors: not_found, corrupt, and those of files.
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

// The directory of an upload's parts while it runs, and when they are an object's.
std::string upload_path(const BucketTree& tree, const std::string& id);
std::string parts_of(const BucketTree& tree, const std::string& id);

Result<Opened> open_object(const BucketTree& tree, const std::string& key);
// What a listing shows of an object that cannot be read: so that it is seen to be there, and a get says what is wrong.
ObjectInfo describe_broken(const BucketTree& tree, const std::string& key, const Error& why);

// IDs come from outside.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& id);
// The same when it is one for the key.
Result<UploadFile> read_upload(const BucketTree& tree, const std::string& key, const std::string& id);
Result<std::map<uint32_t, PartInfo>> read_parts(const std::string& directory);
// Whether the object of that key is the list of this upload's parts.
bool belongs_to_object(const BucketTree& tree, const std::string& key, const std::string& id);

// Adds all objects, and the parts of running uploads. What cannot be read counts as its file's length, of no owner.
Result<void> count_stored(BucketTree& tree, StorageUse& use);

}  // namespace trainyard::objects
