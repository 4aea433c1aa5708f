// S3: the list of its parts. Each speaks to the one Objects of the server, whatever is behind it.
#include "api/operations/operations.hpp"
#include "api/operations/s3_common.hpp"

namespace trainyard::api {

void add_s3(OperationTable& table, const Settings&, const Services& services) {
  add_s3_buckets(table, services.objects, services.identities);
  add_s3_policies(table, services.objects, services.identities);
  add_s3_lists(table, services.objects);
  add_s3_objects(table, services.objects);
  add_s3_uploads(table, services.objects);
}

}  // namespace trainyard::api
