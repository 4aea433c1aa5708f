// Registers S3's operations, by subject. All share the server's Objects.
#include "s3/operations.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {

void add_operations(OperationTable& table, const Settings&, const Services& services) {
  const auto settings = std::make_shared<BucketSettings>(services.control);
  add_buckets(table, services.objects, services.identities, settings);
  add_policies(table, services.objects, services.identities, settings);
  add_settings(table, services.objects, services.random, settings);
  add_lists(table, services.objects);
  add_objects(table, services.objects);
  add_attributes(table, services.objects);
  add_defaults(table, services.objects);
  add_tagging(table, services.objects);
  add_uploads(table, services.objects);
}

}  // namespace trainyard::api::s3
