/** The address of the APIs: the service's `KIS_PUBLIC_URL`, or the address of this page. */
export const PUBLIC_URL = document.documentElement.dataset.publicUrl ?? location.origin
