const SEPARATORS = /[-_.]+/g;

/** Normalizes the name of a Python package for comparison (PEP 503): `Zope_Interface` becomes `zope-interface`. */
export const normalizePythonName = (name: string): string => name.replace(SEPARATORS, '-').toLowerCase();
