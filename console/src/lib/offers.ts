// Reads the instance types that DescribeRegion offers, for the choice in a form.
import { bytes, number } from './format';

export interface Offer {
  InstanceType: string;
  Cpus?: number;
  MemoryInBytes?: number;
  Gpus?: number;
  OnDemandPerHour?: number;
  SpotPerHour?: number;
  HostsTotal?: number; // undefined: jobs are scaled down to the capacity
  HostsFree?: number;
}

export interface OfferGroup {
  title: string;
  offers: Offer[];
}

// Groups the types by whether they fit, each by GPUs and size.
export function grouped(offers: readonly Offer[]): OfferGroup[] {
  const sorted = [...offers].sort(
    (a, b) =>
      (a.Gpus ?? 0) - (b.Gpus ?? 0) ||
      (a.Cpus ?? 0) - (b.Cpus ?? 0) ||
      (a.MemoryInBytes ?? 0) - (b.MemoryInBytes ?? 0) ||
      a.InstanceType.localeCompare(b.InstanceType),
  );
  const known = (offer: Offer) => offer.HostsTotal !== undefined;
  return [
    { title: 'Fit now', offers: sorted.filter((offer) => known(offer) && !!offer.HostsFree) },
    { title: 'Fit once jobs have ended', offers: sorted.filter((offer) => !!offer.HostsTotal && !offer.HostsFree) },
    { title: 'Fit no machine as it is', offers: sorted.filter((offer) => known(offer) && !offer.HostsTotal) },
    { title: 'Instance types', offers: sorted.filter((offer) => !known(offer)) },
  ].filter((group) => group.offers.length);
}

export function sizeOf(offer: Offer): string {
  const parts = [];
  if (offer.Cpus !== undefined) parts.push(`${number(offer.Cpus)} vCPU`);
  if (offer.MemoryInBytes !== undefined) parts.push(bytes(offer.MemoryInBytes).replace('.0 ', ' '));
  if (offer.Gpus) parts.push(offer.Gpus === 1 ? '1 GPU' : `${offer.Gpus} GPUs`);
  return parts.join(', ');
}

export function priceOf(offer: Offer, spot: boolean, currency: string): string {
  const price = spot ? offer.SpotPerHour : offer.OnDemandPerHour;
  return price === undefined ? 'no price' : `${number(price, 4)} ${currency} an hour`;
}
