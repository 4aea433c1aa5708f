// Notifies elements when they enter or leave the window or its surroundings.
const MARGIN = '600px 0px'; // a third of a second at the speed of a fast scroll

export function watchView(changed: (element: Element, near: boolean) => void): IntersectionObserver {
  return new IntersectionObserver(
    (entries) => {
      for (const entry of entries) changed(entry.target, entry.isIntersecting);
    },
    { rootMargin: MARGIN },
  );
}
