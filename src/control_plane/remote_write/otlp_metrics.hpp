// Encodes series as OpenTelemetry metrics: a request of OTLP/HTTP in JSON
// (ExportMetricsServiceRequest), which a collector accepts at /v1/metrics.
// (https://opentelemetry.io/docs/specs/otlp,
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics)
//
// The labels `job` and `instance`, which are equal in all series of a server, become the resource's
// service.name and service.instance.id; the other labels become attributes. A series whose name
// ends in _total becomes a monotonic sum since `started`, and any other series a gauge.
//
// Threads: pure function. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "remote_write/write_request.hpp"

namespace trainyard::remote_write {

std::string otlp_metrics_of(const std::vector<TimeSeries>& series, Instant started);

}  // namespace trainyard::remote_write
