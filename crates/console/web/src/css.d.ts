// Style sheets are bundled beside the script; a module has nothing of them.
declare module "*.css";
