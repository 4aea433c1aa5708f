// Commits changes of records of the ledger, and waits until they are durable.
//
// Threads: must not run on the thread that commits. Errors: those of Control::change_records().
#pragma once

#include <memory>

#include "control/control.hpp"

namespace trainyard::api {

Result<std::shared_ptr<const domain::Records>> commit_records(control::Control& control,
                                                              control::RecordsRequest request);

}  // namespace trainyard::api
