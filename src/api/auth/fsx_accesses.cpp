#include "auth/fsx_accesses.hpp"

#include <initializer_list>

#include "auth/member_texts.hpp"
#include "auth/request_tags.hpp"
#include "file_systems/check.hpp"

namespace trainyard::api {
namespace {

// Adds the S3 locations that an FSx request links or writes to. The server reads and writes them
// later with its own rights, so the principal must have these rights. An invalid path is rejected
// later.
void add_fsx_places(const shapes::Shape& shape, const void* input, Accesses& out) {
  const auto add = [&](std::string_view member, bool lists,
                       std::initializer_list<const char*> actions, const char* below = nullptr) {
    for (const std::string& uri : texts_at(&shape, input, member)) {
      const auto at = file_systems::parse_repository(uri);
      if (!at) continue;
      if (lists) out.all.push_back({"s3:ListBucket", "arn:aws:s3:::" + at->bucket});
      for (const char* action : actions)
        out.all.push_back(
            {action, "arn:aws:s3:::" + at->bucket + "/" + (below ? below : at->key) + "*"});
    }
  };
  add("LustreConfiguration.ImportPath", true, {"s3:GetObject"});
  add("LustreConfiguration.ExportPath", true, {"s3:PutObject", "s3:GetObject"});
  // Without an export path, there is a default one in the same bucket.
  if (texts_at(&shape, input, "LustreConfiguration.ExportPath").empty())
    add("LustreConfiguration.ImportPath", false, {"s3:PutObject"}, "FSxLustre");
  add("DataRepositoryPath", true, {"s3:GetObject", "s3:PutObject"});
  add("Report.Path", false, {"s3:PutObject"});
}

}  // namespace

void add_fsx_accesses(const shapes::OperationShape& operation, const void* input, Accesses& out) {
  const auto texts = [&](std::string_view path) { return texts_at(operation.input, input, path); };
  add_fsx_places(*operation.input, input, out);
  // As on AWS, creating a resource with tags needs the permission to tag it.
  if (operation.name.starts_with("Create") && !texts("Tags[].Key").empty())
    out.all.push_back({"fsx:TagResource", out.all.front().resource});
  add_tags(texts("Tags[].Key"), texts("Tags[].Value"), out);
  if (operation.name == "UntagResource") set(out.values, "aws:TagKeys", texts("TagKeys[]"));
}

}  // namespace trainyard::api
