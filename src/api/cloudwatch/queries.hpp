// Reads the queries of GetMetricData and PutMetricAlarm, and checks them with AWS's texts.
//
// Threads: pure functions.
#pragma once

#include "shapes/cloudwatch.hpp"

#include <string>
#include <vector>

#include "metric_math/query.hpp"
#include "operations/context.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::cloudwatch {

// `name`: the list in messages. A query without a label gets "METRIC STATISTIC" or its id.
Outcome<std::vector<metric_math::Query>> to_queries(
    const Context& context, const std::vector<shapes::cloudwatch::MetricDataQuery>& queries,
    const std::string& name);

}  // namespace trainyard::api::cloudwatch
