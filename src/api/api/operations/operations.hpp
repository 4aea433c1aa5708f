// The one table of all operations. A file per family of calls adds its own; operations.cpp lists the files.
//
// Lifetime: the services outlive the table.
#pragma once

#include "api/api.hpp"
#include "api/operations/table.hpp"

namespace trainyard::api {

void add_sagemaker(OperationTable& table, const Settings& settings, const Services& services);
void add_sts(OperationTable& table, const Settings& settings, const Services& services);
void add_iam(OperationTable& table, const Settings& settings, const Services& services);
void add_logs(OperationTable& table, const Settings& settings, const Services& services);
void add_cloudwatch(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_catalog(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_jobs(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_policies(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_consumables(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_service(OperationTable& table, const Settings& settings, const Services& services);
void add_batch_snapshot(OperationTable& table, const Settings& settings, const Services& services);
void add_job_reports(OperationTable& table, const Settings& settings, const Services& services);
void add_s3(OperationTable& table, const Settings& settings, const Services& services);
void add_interruptions(OperationTable& table, const Settings& settings, const Services& services);
void add_campaigns(OperationTable& table, const Settings& settings, const Services& services);

// Every operation of this server.
OperationTable all_operations(const Settings& settings, const Services& services);

// The services whose shapes were made, in the order in which a request is looked up.
std::span<const shapes::Service* const> all_services();

}  // namespace trainyard::api
