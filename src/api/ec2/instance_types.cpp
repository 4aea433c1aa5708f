// Implements the operations on instance types: their hardware, the zones that offer them, and their
// spot prices.
//
// The types come from domain/instance_type.hpp, without SageMaker's prefix "ml.". Details that this
// table lacks, such as disks and bandwidths, are left out.
#include <cmath>
#include <cstdio>

#include "domain/instance_type.hpp"
#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr std::string_view kSageMakerPrefix = "ml.";
constexpr size_t kTypesOfPage = 100;  // as AWS
constexpr double kMibOfGib = 1'024;
constexpr std::string_view kProduct = "Linux/UNIX";

std::string ec2_name(const domain::InstanceType& type) {
  return std::string(type.name.substr(kSageMakerPrefix.size()));
}

// AWS's names of the GPUs of a family.
constexpr std::pair<std::string_view, std::string_view> kGpus[] = {
    {"p2", "K80"},       {"p3", "V100"},  {"p3dn", "V100"}, {"p4d", "A100"}, {"p4de", "A100"},
    {"p5", "H100"},      {"p5e", "H200"}, {"p5en", "H200"}, {"g4dn", "T4"},  {"p6-b200", "B200"},
    {"p6-b300", "B300"}, {"g5", "A10G"},  {"g6", "L4"},     {"g6e", "L40S"}, {"p6e-gb200", "B200"},
};

std::string family_of(const std::string& type) { return type.substr(0, type.find('.')); }

aws::InstanceTypeInfo to_shape(const domain::InstanceType& type) {
  aws::InstanceTypeInfo out;
  const std::string name = ec2_name(type), family = family_of(name);
  out.instance_type = name;
  out.supported_usage_classes = {"on-demand", "spot"};
  out.bare_metal = false;
  out.processor_info.emplace().supported_architectures = {family.ends_with("gb200") ? "arm64"
                                                                                    : "x86_64"};
  out.v_cpu_info.emplace().default_v_cpus = int64_t(type.cpus);
  out.memory_info.emplace().size_in_mi_b = std::llround(type.memory_gib * kMibOfGib);
  out.burstable_performance_supported = family.starts_with("t");
  if (type.gpus == 0) return out;
  aws::GpuDeviceInfo gpu;
  const auto model = std::ranges::find(kGpus, family, [](const auto& each) { return each.first; });
  if (model != std::end(kGpus)) gpu.name = std::string(model->second);
  gpu.manufacturer = "NVIDIA";
  gpu.count = int64_t(type.gpus);
  out.gpu_info.emplace().gpus = {std::move(gpu)};
  return out;
}

Outcome<Done> check_types(const Ids& wanted) {
  std::string unknown;
  for (const std::string& name : wanted.value_or(Texts()))
    if (!domain::find_instance_type(std::string(kSageMakerPrefix) + name))
      unknown.append(unknown.empty() ? "" : ", ").append(shorten(name, 100));
  if (unknown.empty()) return Done{};
  return ec2_failure(
      "InvalidInstanceType",
      "The following supplied instance types do not exist: [" + shorten(unknown, 1'024) + "]");
}

using Type = aws::InstanceTypeInfo;
constexpr Attribute<Type> kTypeAttributes[] = {
    {"instance-type", [](const Type& type) { return texts(type.instance_type); }},
    {"bare-metal", [](const Type& type) { return texts(type.bare_metal); }},
    {"burstable-performance-supported",
     [](const Type& type) { return texts(type.burstable_performance_supported); }},
    {"memory-info.size-in-mib",
     [](const Type& type) { return texts(type.memory_info->size_in_mi_b); }},
    {"processor-info.supported-architecture",
     [](const Type& type) { return *type.processor_info->supported_architectures; }},
    {"supported-usage-class", [](const Type& type) { return *type.supported_usage_classes; }},
    {"vcpu-info.default-vcpus",
     [](const Type& type) { return texts(type.v_cpu_info->default_v_cpus); }},
};

Outcome<aws::DescribeInstanceTypesResult> describe_instance_types(
    const aws::DescribeInstanceTypesRequest& in) {
  if (in.instance_types && !in.instance_types->empty() && in.max_results)
    return invalid_parameter_combination(
        "The parameter InstanceTypes cannot be used with the parameter MaxResults");
  TRY(check_types(in.instance_types));
  std::vector<Type> types;
  for (const domain::InstanceType& type : domain::instance_types())
    if (is_wanted(in.instance_types, ec2_name(type))) types.push_back(to_shape(type));
  TRY(keep_matching(in.filters, kTypeAttributes, types));
  aws::DescribeInstanceTypesResult out;
  out.instance_types = TRY(page_of(
      in, std::move(types), [](const Type& type) { return *type.instance_type; }, out.next_token,
      kTypesOfPage));
  return out;
}

using Offering = aws::InstanceTypeOffering;
constexpr Attribute<Offering> kOfferingAttributes[] = {
    {"instance-type", [](const Offering& each) { return texts(each.instance_type); }},
    {"location", [](const Offering& each) { return texts(each.location); }},
};

Texts locations_of(const std::string& region, const std::string& type) {
  if (type == "region") return {region};
  Texts zones = zones_of(region);
  if (type == "availability-zone-id")
    for (std::string& zone : zones) zone = zone_id(region, zone);
  return zones;
}

Outcome<aws::DescribeInstanceTypeOfferingsResult> describe_instance_type_offerings(
    const Context& context, const aws::DescribeInstanceTypeOfferingsRequest& in) {
  const std::string location_type = in.location_type.value_or("region");
  if (location_type == "outpost") return unsupported_parameter("LocationType=outpost");
  std::vector<Offering> offerings;
  for (const std::string& location : locations_of(context.region, location_type))
    for (const domain::InstanceType& type : domain::instance_types())
      offerings.push_back(
          {.instance_type = ec2_name(type), .location_type = location_type, .location = location});
  TRY(keep_matching(in.filters, kOfferingAttributes, offerings));
  aws::DescribeInstanceTypeOfferingsResult out;
  out.instance_type_offerings = TRY(page_of(
      in, std::move(offerings),
      [](const Offering& each) { return *each.location + "/" + *each.instance_type; },
      out.next_token));
  return out;
}

using SpotPrice = aws::SpotPrice;
constexpr Attribute<SpotPrice> kPriceAttributes[] = {
    {"availability-zone", [](const SpotPrice& each) { return texts(each.availability_zone); }},
    {"availability-zone-id",
     [](const SpotPrice& each) { return texts(each.availability_zone_id); }},
    {"instance-type", [](const SpotPrice& each) { return texts(each.instance_type); }},
    {"product-description", [](const SpotPrice& each) { return texts(each.product_description); }},
    {"spot-price", [](const SpotPrice& each) { return texts(each.spot_price); }},
};

std::string price_text(double price) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6f", price);
  return text;
}

// Returns the configured price of the type, or of SageMaker's type with the same hardware.
std::optional<domain::Price> price_of(const domain::PriceTable& prices, const std::string& region,
                                      const domain::InstanceType& type) {
  if (auto price = prices.find(region, ec2_name(type))) return price;
  return prices.find(region, std::string(type.name));
}

bool is_wanted_product(const Ids& wanted) {
  return !wanted || wanted->empty() || std::ranges::any_of(*wanted, [](const std::string& each) {
    return each == kProduct || each == std::string(kProduct) + " (Amazon VPC)";
  });
}

// Prices come from the configuration, so the history of each is one entry, with the requested time.
Outcome<aws::DescribeSpotPriceHistoryResult> describe_spot_price_history(
    const Settings& settings, const Context& context,
    const aws::DescribeSpotPriceHistoryRequest& in) {
  const auto zones = zones_of(context.region);
  if (in.availability_zone && std::ranges::find(zones, *in.availability_zone) == zones.end())
    return invalid_parameter_value("Invalid availability zone: [" +
                                   shorten(*in.availability_zone, 100) + "]");
  std::vector<SpotPrice> prices;
  for (const domain::InstanceType& type : domain::instance_types()) {
    const auto price = price_of(settings.prices, context.region, type);
    if (!price || !is_wanted(in.instance_types, ec2_name(type)) ||
        !is_wanted_product(in.product_descriptions))
      continue;
    for (const std::string& zone : zones) {
      const std::string id = zone_id(context.region, zone);
      if (zone != in.availability_zone.value_or(zone) || id != in.availability_zone_id.value_or(id))
        continue;
      prices.push_back({.availability_zone = zone,
                        .availability_zone_id = id,
                        .instance_type = ec2_name(type),
                        .product_description = std::string(kProduct),
                        .spot_price = price_text(price->spot),
                        .timestamp = in.start_time.value_or(context.now)});
    }
  }
  TRY(keep_matching(in.filters, kPriceAttributes, prices));
  aws::DescribeSpotPriceHistoryResult out;
  out.spot_price_history = TRY(page_of(
      in, std::move(prices),
      [](const SpotPrice& each) { return *each.availability_zone + "/" + *each.instance_type; },
      out.next_token));
  return out;
}

}  // namespace

void add_instance_types(OperationTable& table, const Store& store, const Settings& settings) {
  add_read<aws::DescribeInstanceTypes>(
      table, store,
      [](const Networks&, const Context&, const aws::DescribeInstanceTypesRequest& in) {
        return describe_instance_types(in);
      });
  add_read<aws::DescribeInstanceTypeOfferings>(
      table, store,
      [](const Networks&, const Context& context,
         const aws::DescribeInstanceTypeOfferingsRequest& in) {
        return describe_instance_type_offerings(context, in);
      });
  add_read<aws::DescribeSpotPriceHistory>(
      table, store,
      [&settings](const Networks&, const Context& context,
                  const aws::DescribeSpotPriceHistoryRequest& in) {
        return describe_spot_price_history(settings, context, in);
      });
}

}  // namespace trainyard::api::ec2
