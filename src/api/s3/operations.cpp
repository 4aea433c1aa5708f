// S3: the list of its parts. Each speaks to the one Objects of the server, whatever is behind it.
#include "s3/operations.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {

void add_operations(OperationTable& table, const Settings&, const Services& services) {
  add_buckets(table, services.objects, services.identities);
  add_policies(table, services.objects, services.identities);
  add_lists(table, services.objects);
  add_objects(table, services.objects);
  add_uploads(table, services.objects);
}

}  // namespace trainyard::api::s3
